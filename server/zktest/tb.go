package zktest

// TB is what Run needs of a test: every testing.TB has it. It is less than
// testing.TB so that a program that is no test can run a test server, too,
// without package testing in it. Fatal and Fatalf must not return.
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
