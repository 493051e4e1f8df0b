// Package wait waits for conditions that nothing signals. It should be the only place where
// tests poll. We check a condition often at first and then less often, and name the missing
// condition if a wait fails.
//
// It imports only the standard library, so every test may use it.
package wait

import (
	"fmt"
	"testing"
	"time"
)

// Patience bounds every wait for something that should need seconds at most. Even a loaded machine
// needs much less.
const Patience = 2 * time.Minute

// The shortest and the longest pause between two questions.
const (
	firstPause   = 50 * time.Microsecond
	longestPause = 5 * time.Millisecond
)

// Eventually waits until ok returns true, and fails the test if it doesn't within Patience.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if err := For(Patience, what, func() (bool, error) { return ok(), nil }); err != nil {
		t.Fatal(err)
	}
}

// For calls ok until it returns true or an error. If neither happens within the limit, the
// error of For says so.
func For(limit time.Duration, what string, ok func() (bool, error)) error {
	pause := firstPause
	for end := time.Now().Add(limit); ; pause = min(2*pause, longestPause) {
		if there, err := ok(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		} else if there {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %s", limit, what)
		}
		time.Sleep(pause)
	}
}

// Success calls try until it returns nil. If it doesn't within the limit, the error of
// Success wraps the last one of try.
func Success(limit time.Duration, what string, try func() error) error {
	var last error
	err := For(limit, what, func() (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
