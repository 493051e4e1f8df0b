// Package arch holds the rules of the house that a compiler does not check:
// who may import whom, how large a file or a function may grow, and how tests
// wait. Its tests read the source of the whole module and nothing else.
package arch
