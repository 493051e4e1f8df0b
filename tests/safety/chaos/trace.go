package chaos

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// Trace is the log of a run, with a line for every action and observation. Its methods may be
// called concurrently.
type Trace struct {
	began time.Time
	also  func(string) // also receives every line

	mu   sync.Mutex
	file *os.File
}

// NewTrace creates a trace that is written to a file.
func NewTrace(path string, also func(string)) (*Trace, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &Trace{began: time.Now(), file: f, also: also}, nil
}

// Printf adds a line.
func (t *Trace) Printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.mu.Lock()
	fmt.Fprintf(t.file, "%9.3f %s\n", time.Since(t.began).Seconds(), text)
	t.mu.Unlock()
	if t.also != nil {
		t.also(text)
	}
}

// Close closes the file.
func (t *Trace) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.file.Close()
}
