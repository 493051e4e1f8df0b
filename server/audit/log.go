package audit

import (
	"errors"
	"log/slog"
	"sync"
)

// Sink is where records go. One goroutine calls it.
type Sink interface {
	// Write writes the records in their order. After an error nobody knows how
	// many of them are there; they are not written again.
	Write(records []Record) error
	Close() error
}

// maxHeld is how many records may wait before Wait makes readers wait.
const maxHeld = 16384

// Log takes records and writes them behind the back of who hands them in. Its
// methods are safe for concurrent use.
type Log struct {
	sink Sink
	log  *slog.Logger
	wake chan struct{} // holds one when there is something to do
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	held    []Record
	writing int           // records that the writer has taken and not yet written
	room    chan struct{} // closed when fewer than maxHeld wait; nil while nobody waits
	closed  bool
	err     error // of closing the sink

	lost int // the writer's own: records since the first error
}

// New returns a Log that writes to sink and tells log when it cannot. Close has
// to be called.
func New(sink Sink, log *slog.Logger) *Log {
	l := &Log{sink: sink, log: log, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.write()
	return l
}

// Add takes a record. It does not wait for anything but other callers.
func (l *Log) Add(r Record) {
	l.mu.Lock()
	if !l.closed {
		l.held = append(l.held, r)
	}
	l.mu.Unlock()
	l.poke()
}

func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Wait returns when the writer keeps up, when stop is closed, or when l is.
func (l *Log) Wait(stop <-chan struct{}) {
	for {
		l.mu.Lock()
		if l.closed || len(l.held)+l.writing < maxHeld {
			l.mu.Unlock()
			return
		}
		if l.room == nil {
			l.room = make(chan struct{})
		}
		room := l.room
		l.mu.Unlock()
		select {
		case <-room:
		case <-stop:
			return
		}
	}
}

// Close writes what is left and closes the sink. What is added later is dropped.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.letIn()
	l.mu.Unlock()
	l.poke()
	<-l.done
	return l.err
}

// letIn ends the waits; l.mu is held.
func (l *Log) letIn() {
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}

// write is the writer.
func (l *Log) write() {
	defer close(l.done)
	for range l.wake {
		for l.writeHeld() {
		}
		l.mu.Lock()
		over := l.closed && len(l.held) == 0
		l.mu.Unlock()
		if over {
			l.err = l.sink.Close()
			return
		}
	}
}

// writeHeld writes all that waits and reports whether there was anything.
func (l *Log) writeHeld() bool {
	l.mu.Lock()
	batch := l.held
	l.held, l.writing = nil, len(batch)
	l.mu.Unlock()
	if len(batch) == 0 {
		return false
	}
	err := l.sink.Write(batch)
	l.mu.Lock()
	l.writing = 0
	if len(l.held) < maxHeld {
		l.letIn()
	}
	l.mu.Unlock()
	switch {
	case err != nil && l.lost == 0:
		l.lost = len(batch)
		l.log.Error("the audit log cannot be written; the server goes on without", "error", err)
	case err != nil:
		l.lost += len(batch)
	case l.lost > 0:
		l.log.Warn("the audit log can be written again", "records_lost_at_most", l.lost)
		l.lost = 0
	}
	return true
}

// Logger returns a sink that hands records to the server's own log.
func Logger(log *slog.Logger) Sink { return logger{log} }

type logger struct{ log *slog.Logger }

func (s logger) Write(records []Record) error {
	for i := range records {
		r := &records[i]
		var args []any
		for _, f := range r.Fields() {
			args = append(args, slog.String(f.Name, f.Value))
		}
		if r.Result == Failure {
			s.log.Error("audit", args...)
		} else {
			s.log.Info("audit", args...)
		}
	}
	return nil
}

func (logger) Close() error { return nil }

// ErrNoFile says that a file sink has no name.
var ErrNoFile = errors.New("audit: no file is named")
