package zktest

import (
	"bytes"
	"log/slog"
	"sync"
)

// keptLines is how much of the server's log is kept for a test that fails.
const keptLines = 1000

// logs keeps the server's log until the test has failed, or hands it on.
type logs struct {
	t    TB
	now  bool
	mu   sync.Mutex
	kept [][]byte
	lost int
	over bool
}

func (l *logs) logger(name string) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, nil)).With("zktest", name)
}

// Write takes one line.
func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
	case l.now:
		l.t.Logf("%s", bytes.TrimSpace(line))
	default:
		if len(l.kept) == keptLines {
			l.kept = l.kept[:copy(l.kept, l.kept[keptLines/2:])]
			l.lost += keptLines / 2
		}
		l.kept = append(l.kept, bytes.Clone(line))
	}
	return len(line), nil
}

// say writes to the test's log, unless the test is over.
func (l *logs) say(format string, args ...any) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.t.Logf("zktest: "+format, args...)
	}
}

// end is the last word: nothing may be written to the log of a test that has
// ended.
func (l *logs) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if !l.t.Failed() || len(l.kept) == 0 {
		return
	}
	l.t.Logf("zktest: the server's log, %d lines before left out:\n%s", l.lost, bytes.Join(l.kept, nil))
}
