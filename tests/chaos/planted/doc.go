// Package planted shows that a chaos run can fail: it builds servers with one
// mechanism broken each, has package chaos torment them with the faults that the
// mechanism is there for, and asks that the checkers name the broken promise.
//
// It imports tests/chaos and tests/checkers. The source stays as it is: broken
// files are laid over it for the compiler alone.
package planted
