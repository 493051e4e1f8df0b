package chaos

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// Trace is the story of a run, one line for everything that was done or seen.
// Its methods may be called by any goroutine.
type Trace struct {
	began time.Time
	also  func(string) // gets every line, too

	mu   sync.Mutex
	file *os.File
}

// NewTrace begins a trace in a file.
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
