// Package keystore turns ZooKeeper's ssl.* settings into a TLS configuration:
// it reads key stores and trust stores as PEM, PKCS12 and JKS files and
// reloads them when they change.
//
// It imports the standard library and two libraries for the Java formats, and
// neither opens sockets nor starts goroutines: a changed file is noticed when
// the next client or server shakes hands.
//
// Every error names the file and, where there is one, the certificate.
package keystore
