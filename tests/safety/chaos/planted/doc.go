// Package planted shows that a chaos run can fail: we build servers that each have a broken
// mechanism, let package chaos inject the faults that the mechanism protects against, and require
// that the checkers name the broken guarantee.
//
// It imports tests/safety/chaos and tests/kit/checkers. We don't change the source: only the
// compiler reads the broken files instead.
package planted
