// Package must ends a test at an error of a step that the test needs and is not about.
//
// It imports only the standard library, so every test may use it.
package must

import "testing"

// Do ends the test if err is an error.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, or ends its test if err is an error:
//
//	content := must.Get(os.ReadFile(path))(t)
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}
