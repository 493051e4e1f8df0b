// Package control runs a test server that programs in any language can control over HTTP.
// Each endpoint corresponds to a function or method of package zktest. The command "zkgo
// testserver" serves these endpoints. docs/guide/testserver.md describes them, and we
// compare that page with the table in routes.go in a test.
//
// We check input before zktest sees it, and return an error that names the invalid part. If
// zktest itself can't do something, it ends the operation as it would end a test, and only
// that call returns the error (see bench).
//
// The endpoints may be called concurrently. Calls that move time, reset the tree or change
// the ensemble run one at a time; calls that wait don't block others.
//
// It imports zktest, server and proto.
package control
