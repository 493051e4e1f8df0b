// Package certs returns the owner of a verified certificate, checks whether the certificate is for
// the host that sent it, and explains why a handshake failed. It reads no files.
//
// It imports the standard library only.
package certs
