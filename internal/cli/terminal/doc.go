// Package terminal has what a command line needs besides its commands: styles, single
// keys, the history of lines, and the words of a line, with the quotes of zkCli.sh.
//
// It knows no ensemble and imports the standard library only.
package terminal
