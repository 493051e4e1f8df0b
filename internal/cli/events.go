package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/zkgo/zkgo/internal/cli/terminal"
)

// event is a change of a watched znode or of the connection.
type event struct {
	State string `json:"state"`
	Type  string `json:"type"`
	Path  string `json:"path,omitempty"`
	Zxid  int64  `json:"zxid"`

	note string // a text for the error stream instead of an event
}

// String formats the event as ZooKeeper's Java client does.
func (e event) String() string {
	path := e.Path
	if path == "" {
		path = "null"
	}
	return fmt.Sprintf("WatchedEvent state:%s type:%s path:%s zxid: %d", e.State, e.Type, path, e.Zxid)
}

// events prints events in order from its own goroutine, so that we don't wait for a
// terminal when we add one. It is safe for concurrent use.
type events struct {
	mu    sync.Mutex
	wake  sync.Cond
	queue []event
	busy  bool // the goroutine is printing
	on    bool // events are printed
	ended bool
	muted func(path string) bool // selects events that a command shows itself; may be nil
	print func(event)
	wg    sync.WaitGroup
}

func newEvents(print func(event)) *events {
	e := &events{on: true, print: print}
	e.wake.L = &e.mu
	e.wg.Go(e.run)
	return e
}

// tell queues an event.
func (e *events) tell(v event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.on && !e.ended && (e.muted == nil || !e.muted(v.Path)) {
		e.queue = append(e.queue, v)
		e.wake.Broadcast()
	}
}

// note queues a text for the error stream, even while events aren't printed.
func (e *events) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.queue = append(e.queue, event{note: text})
		e.wake.Broadcast()
	}
}

// flush returns after everything queued has been printed.
func (e *events) flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) > 0 || e.busy {
		e.wake.Wait()
	}
}

// close prints the remaining events and ends the goroutine.
func (e *events) close() {
	e.mu.Lock()
	e.ended = true
	e.wake.Broadcast()
	e.mu.Unlock()
	e.wg.Wait()
}

func (e *events) printing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on
}

func (e *events) setPrinting(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.on = on
}

// mute suppresses events with these paths; nil suppresses none.
func (e *events) mute(muted func(path string) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.muted = muted
}

func (e *events) run() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for len(e.queue) == 0 && !e.ended {
			e.wake.Wait()
		}
		if len(e.queue) == 0 {
			return
		}
		list := e.queue
		e.queue, e.busy = nil, true
		e.mu.Unlock()
		for _, v := range list {
			e.print(v)
		}
		e.mu.Lock()
		e.busy = false
		e.wake.Broadcast()
	}
}

// printEvent prints an event as zkCli.sh does, or as JSON, which includes only znode
// events. Without a prompt, we print the connection's events to the error stream.
func (s *Shell) printEvent(e event) {
	var text string
	to := s.cfg.Out
	if e.Type == "None" && !s.cfg.Prompt {
		to = s.cfg.Err // standard output is for data
	}
	switch {
	case e.note != "":
		text, to = e.note, s.cfg.Err
	case e.Type == "None" && (s.cfg.JSON || s.cfg.Quiet):
		return
	case s.cfg.JSON:
		b, _ := json.Marshal(map[string]event{"event": e}) // strings and numbers always encode
		text = string(b) + "\n"
	default:
		text = "\nWATCHER::\n\n" + s.cfg.Term.Paint(terminal.Good, e.String()) + "\n"
	}
	if above := s.above.Load(); above != nil {
		(*above)(text)
		return
	}
	_, _ = io.WriteString(to, text)
}
