// Package summary keeps what runs of the simulation and of chaos have shown, one
// line of JSON for each, and adds up the lines of many: what the documentation
// says about hours, faults, operations and violations comes from there.
//
//	make sim SEEDS=200; make chaos DURATION=1h; make figures
//
// Several processes may append to one file at the same time. The package imports
// tests/checkers, and is imported by tests alone.
package summary
