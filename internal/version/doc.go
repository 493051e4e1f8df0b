// Package version says which version of zkgo a program contains.
//
// It imports the standard library only.
package version
