// Package keystore turns ZooKeeper's ssl.* settings into a TLS configuration:
// it reads key stores and trust stores as PEM, PKCS12 and JKS files and
// reloads them when they change.
//
// It imports the standard library, two libraries for the Java formats, one for
// encrypted keys and one for OCSP. It starts no goroutines: a changed file is
// noticed when the next client or server shakes hands, and whether that one was
// revoked is asked, where the settings want it, while it does.
//
// Every error names the file and, where there is one, the certificate.
package keystore
