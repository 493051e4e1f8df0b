// Package jaas parses the sections of a JAAS login configuration that contain users
// and passwords for DIGEST-MD5, in the format of ZooKeeper's DigestLoginModule.
//
// It imports sasl, and the standard library.
package jaas
