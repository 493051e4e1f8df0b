// Package control runs a test server that programs in any language steer over
// HTTP: what package zktest does by a call in a Go test, an endpoint does here.
// It is what the command "zkgo testserver" serves; docs/testserver.md describes
// the endpoints, and a test holds that page against the table in routes.go.
//
// Input that makes no sense is answered with an error that names it before
// zktest sees it. What zktest itself cannot do ends the operation as it would
// end a test, and becomes the error of that one call (see bench).
//
// The endpoints may be called at the same time. Those that move time, begin
// anew or change the ensemble go one after the other; those that wait hold
// nobody up.
//
// It imports zktest, server and proto.
package control
