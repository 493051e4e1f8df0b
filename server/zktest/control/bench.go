package control

import (
	"fmt"
	"os"
	"sync"
)

// bench stands in for the test that a test server usually belongs to. An
// operation that fails is ended by Fatal as a test would be, from the inside;
// try is what it ends at.
type bench struct {
	log func(line string)

	mu       sync.Mutex
	cleanups []func()
}

// failure is what Fatal ends an operation with.
type failure struct{ text string }

func (*bench) Helper()      {}
func (*bench) Failed() bool { return false }

func (b *bench) Logf(format string, args ...any)   { b.log(fmt.Sprintf(format, args...)) }
func (b *bench) Errorf(format string, args ...any) { b.log(fmt.Sprintf(format, args...)) }
func (*bench) Fatal(args ...any)                   { panic(failure{fmt.Sprint(args...)}) }
func (*bench) Fatalf(format string, args ...any)   { panic(failure{fmt.Sprintf(format, args...)}) }

// Cleanup has f called by end, the last first.
func (b *bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// TempDir makes a directory that end deletes.
func (b *bench) TempDir() string {
	dir, err := os.MkdirTemp("", "zkgo-testserver-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Errorf("%v", err)
		}
	})
	return dir
}

// end does what a test's end does.
func (b *bench) end() error {
	b.mu.Lock()
	list := b.cleanups
	b.cleanups = nil
	b.mu.Unlock()
	var first error
	for i := len(list) - 1; i >= 0; i-- {
		if err := try(list[i]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// try calls f and returns what a Fatal within it said.
func try(f func()) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case failure:
			err = &refusal{kind: failed, text: end.text}
		default:
			panic(end)
		}
	}()
	f()
	return nil
}
