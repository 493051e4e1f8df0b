// Package certs tells who a verified certificate belongs to, whether it is for the host that
// it comes from, and why a handshake failed. It reads no files.
//
// It imports the standard library only.
package certs
