// Package keystore converts ZooKeeper's ssl.* settings to a TLS configuration. It
// reads key stores and trust stores in PEM, PKCS12 and JKS files and reloads them
// when they change.
//
// It imports the standard library, internal/smallfile, internal/auth/certs, two libraries for the Java
// formats, one for encrypted keys and one for OCSP. It starts no goroutines: each
// handshake checks for changed files and, if configured, whether the peer's
// certificate was revoked.
//
// Every error names the file and, if possible, the certificate.
package keystore
