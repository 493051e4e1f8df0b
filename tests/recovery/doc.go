// Package recovery destroys a majority of a real ensemble's servers and has the
// survivors serve again by the command that the documentation names.
package recovery
