package zktest

// TB is the part of testing.TB that Run needs. We use a separate interface so that a
// program can run a test server without importing package testing. Fatal and Fatalf must
// not return.
type TB interface {
	Cleanup(f func())
	Errorf(format string, args ...any)
	Failed() bool
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Helper()
	Logf(format string, args ...any)
	TempDir() string
}
