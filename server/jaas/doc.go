// Package jaas reads the sections of a JAAS login configuration that name users
// and passwords of DIGEST-MD5, as ZooKeeper's DigestLoginModule takes them.
//
// It imports sasl, and the standard library.
package jaas
