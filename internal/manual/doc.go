// Package manual writes the man pages: one for each command, with its shell commands, files,
// variables and exit codes, and zoo.cfg(5). They are generated from the commands, their flags
// and the description of zoo.cfg's keys, so they can't disagree with the program.
//
// It imports internal/cli, internal/version, internal/zoocfg and cobra.
package manual
