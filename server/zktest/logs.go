package zktest

import (
	"bytes"
	"log/slog"
	"sync"
)

// keptLines is the number of log lines kept for a test that fails.
const keptLines = 1000

// logs buffers the server's log until the test fails, or passes it on immediately.
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

// Write adds one line.
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

// printf writes to the test's log, unless the test has ended.
func (l *logs) printf(format string, args ...any) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.t.Logf("zktest: "+format, args...)
	}
}

// end stops all output: writing to the log of a test that has ended isn't allowed.
func (l *logs) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if !l.t.Failed() || len(l.kept) == 0 {
		return
	}
	l.t.Logf("zktest: the server's log (%d earlier lines omitted):\n%s", l.lost, bytes.Join(l.kept, nil))
}
