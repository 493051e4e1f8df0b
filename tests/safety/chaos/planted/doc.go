// Package planted shows that a chaos run can fail: it builds servers with one
// broken mechanism each, has package chaos inject the faults that the mechanism
// protects against, and requires that the checkers name the broken guarantee.
//
// It imports tests/safety/chaos and tests/kit/checkers. The source stays unchanged: only the
// compiler reads the broken files in its place.
package planted
