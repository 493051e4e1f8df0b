// Package version returns the version of zkgo that a program contains.
//
// It imports the standard library only.
package version
