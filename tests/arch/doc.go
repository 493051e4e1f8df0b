// Package arch enforces the rules that the compiler doesn't check: which package may
// import which, how large files, functions, types and folders may grow, how tests wait,
// which words comments avoid, and which libraries a package may pull in. Its tests read
// the source of the whole module, and ask the go command.
package arch
