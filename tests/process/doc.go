// Package process starts the zkgo binary as an operator would, kills it as a
// power supply would, and talks to it over raw frames. It serves the tests
// that need a real process.
package process
