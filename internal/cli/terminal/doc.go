// Package terminal contains the parts of a command line that don't depend on its commands:
// styles, single keys, the history, and splitting a line into words with the quotes of zkCli.sh.
//
// It imports the standard library only.
package terminal
