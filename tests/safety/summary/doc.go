// Package summary records the results of simulation and chaos runs, one line of JSON for
// each, and adds up the lines of many runs. The figures in the documentation on hours, faults,
// operations and violations come from there.
//
//	make sim SEEDS=200; make chaos DURATION=1h; make figures
//
// The package imports tests/kit/checkers and, for the lines, tests/kit/report. Only tests
// import it.
package summary
