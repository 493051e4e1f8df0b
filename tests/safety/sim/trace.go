package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// trace is the log of a run, in order: the injected faults and the servers' log
// lines. It is kept only to be written if the run fails.
type trace struct {
	start time.Time

	mu     sync.Mutex
	lines  []string
	counts map[string]int // by text
	live   io.Writer      // receives every line as it is written; nil: not written
}

func newTrace() *trace { return &trace{start: time.Now(), counts: make(map[string]int)} }

func (t *trace) say(format string, args ...any) {
	line := fmt.Sprintf("%12.6f  %s", time.Since(t.start).Seconds(), fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if t.live != nil {
		fmt.Fprintln(t.live, line)
	}
}

// writeTo writes the trace for people.
func (t *trace) writeTo(w io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lines {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return nil
}

// logger returns a logger that writes a server's lines to the trace.
func (t *trace) logger(server int) *slog.Logger {
	return slog.New(&traceLog{t: t, name: fmt.Sprintf("server %d", server)})
}

// traceLog writes the lines of a server's log to a trace.
type traceLog struct {
	t     *trace
	name  string
	attrs string
}

// Enabled implements slog.Handler.
func (*traceLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l *traceLog) Handle(_ context.Context, r slog.Record) error {
	text := l.attrs
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	l.t.say("%s: %v %s%s", l.name, r.Level, r.Message, text)
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.t.counts[r.Message]++
	return nil
}

// WithAttrs implements slog.Handler.
func (l *traceLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *l
	for _, a := range attrs {
		next.attrs += " " + a.String()
	}
	return &next
}

// WithGroup implements slog.Handler; no caller uses groups.
func (l *traceLog) WithGroup(string) slog.Handler { return l }
