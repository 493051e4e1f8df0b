// Package recovery destroys a majority of a real ensemble's servers and makes the
// survivors serve again with the command that the documentation names.
package recovery
