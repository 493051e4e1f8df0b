// Package summary records the results of simulation and chaos runs, one line of JSON for
// each, and adds up the lines of many runs. The documentation takes its figures on hours,
// faults, operations and violations from there.
//
//	make sim SEEDS=200; make chaos DURATION=1h; make figures
//
// Several processes may append to one file at the same time. The package imports
// tests/kit/checkers, and only tests import it.
package summary
