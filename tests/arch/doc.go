// Package arch holds the rules of the house that a compiler does not check:
// who may import whom, how large a file or a function may grow, how tests
// wait, and what a package may pull in. Its tests read the source of the whole
// module, and ask the go command.
package arch
