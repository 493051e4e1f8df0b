// Package process starts the zkgo binary like an operator, kills it like a power
// failure, and talks to it over raw frames. It serves the tests that need a real
// process.
package process
