package audit

import (
	"errors"
	"log/slog"
	"sync"
)

// Sink is the destination of records. A Log calls it from one goroutine.
type Sink interface {
	// Write writes the records in order. After an error the number of records written
	// is unknown; they aren't written again.
	Write(records []Record) error
	Close() error
}

// maxHeld is the number of queued records at which Wait starts to block.
const maxHeld = 16384

// Log queues records and writes them in the background. Its methods are safe for
// concurrent use.
type Log struct {
	sink Sink
	log  *slog.Logger
	wake chan struct{} // contains one token if there is work
	done chan struct{} // closed when the writer has returned

	mu      sync.Mutex
	held    []Record
	writing int           // records that the writer has dequeued but not yet written
	room    chan struct{} // closed when fewer than maxHeld are queued; nil if no goroutine waits
	closed  bool
	err     error // from closing the sink

	lost int // used only by the writer: records since the first error
}

// New returns a Log that writes to sink and reports write errors to log. The caller
// must call Close.
func New(sink Sink, log *slog.Logger) *Log {
	l := &Log{sink: sink, log: log, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.write()
	return l
}

// Add queues a record. It doesn't wait for the sink.
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

// Wait blocks while maxHeld records or more are queued, until stop or l is closed.
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

// Close writes the remaining records and closes the sink. Later records are dropped.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.letIn()
	l.mu.Unlock()
	l.poke()
	<-l.done
	return l.err
}

// letIn wakes the goroutines in Wait. The caller holds l.mu.
func (l *Log) letIn() {
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}

// write is the writer goroutine.
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

// writeHeld writes all queued records and reports whether there were any.
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
		l.log.Error("cannot write the audit log; the server continues without it", "error", err)
	case err != nil:
		l.lost += len(batch)
	case l.lost > 0:
		l.log.Warn("writing the audit log works again", "records_lost_at_most", l.lost)
		l.lost = 0
	}
	return true
}

// Logger returns a sink that writes records to the server's own log.
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

// ErrNoFile means that a file sink has no path.
var ErrNoFile = errors.New("audit: no file given")
