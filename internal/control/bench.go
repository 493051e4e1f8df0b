package control

import (
	"fmt"
	"os"
	"sync"
)

// bench replaces the test that usually owns a test server. Fatal ends a failing operation
// with a panic, as it would end a test, and we recover in try.
type bench struct {
	log func(line string)

	mu       sync.Mutex
	cleanups []func()
}

// failure is the value that Fatal panics with.
type failure struct{ text string }

func (*bench) Helper()      {}
func (*bench) Failed() bool { return false }

func (b *bench) Logf(format string, args ...any)   { b.log(fmt.Sprintf(format, args...)) }
func (b *bench) Errorf(format string, args ...any) { b.log(fmt.Sprintf(format, args...)) }
func (*bench) Fatal(args ...any)                   { panic(failure{fmt.Sprint(args...)}) }
func (*bench) Fatalf(format string, args ...any)   { panic(failure{fmt.Sprintf(format, args...)}) }

// Cleanup registers f to be called by end, last in first out.
func (b *bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// TempDir creates a directory that end deletes.
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

// end does the work of a test's end: it runs the cleanups.
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

// try calls f and returns the message of a Fatal within it as an error.
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
