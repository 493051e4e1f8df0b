package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// History is everything that was recorded, each kind in the order in which it was
// recorded. The checkers only read it.
type History struct {
	Ops      []*Op
	Events   []*Event
	Sessions []*Session
	Holds    []*Hold
	States   []*State
	Notes    []*Note
}

// line is one record in a file: exactly one field is set.
type line struct {
	Op      *Op      `json:"op,omitempty"`
	Event   *Event   `json:"event,omitempty"`
	Session *Session `json:"session,omitempty"`
	Hold    *Hold    `json:"hold,omitempty"`
	State   *State   `json:"state,omitempty"`
	Note    *Note    `json:"note,omitempty"`
}

// add appends the record in l to its list.
func (h *History) add(l *line) bool {
	switch {
	case l.Op != nil:
		h.Ops = append(h.Ops, l.Op)
	case l.Event != nil:
		h.Events = append(h.Events, l.Event)
	case l.Session != nil:
		h.Sessions = append(h.Sessions, l.Session)
	case l.Hold != nil:
		h.Holds = append(h.Holds, l.Hold)
	case l.State != nil:
		h.States = append(h.States, l.State)
	case l.Note != nil:
		h.Notes = append(h.Notes, l.Note)
	default:
		return false
	}
	return true
}

// Recorder collects a History. Its methods may be called concurrently. The caller
// must not change a record after recording it.
type Recorder struct {
	start time.Time

	mu  sync.Mutex
	h   History
	out *bufio.Writer // nil: memory only
	enc *json.Encoder
	err error // the first write error

	clients, conns int // numbers handed out
}

// NewRecorder begins a run. w gets every record as it comes, one JSON object per
// line; if w is nil, the history stays in memory only.
func NewRecorder(w io.Writer) *Recorder {
	r := &Recorder{start: time.Now()}
	if w != nil {
		r.out = bufio.NewWriterSize(w, 1<<20)
		r.enc = json.NewEncoder(r.out)
	}
	return r
}

// Now returns the time since the run began.
func (r *Recorder) Now() Time { return int64(time.Since(r.start)) + 1 }

// NewClient returns an unused client number.
func (r *Recorder) NewClient() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients++
	return r.clients
}

// NewConn returns an unused connection number.
func (r *Recorder) NewConn() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns++
	return r.conns
}

func (r *Recorder) add(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.add(&l)
	if r.enc != nil && r.err == nil {
		r.err = r.enc.Encode(&l)
	}
}

// Op records a request.
func (r *Recorder) Op(o *Op) { r.add(line{Op: o}) }

// Event records a notification.
func (r *Recorder) Event(e *Event) { r.add(line{Event: e}) }

// Session records a change of a session.
func (r *Recorder) Session(s *Session) { r.add(line{Session: s}) }

// Hold records a period in which a client held a lock.
func (r *Recorder) Hold(h *Hold) { r.add(line{Hold: h}) }

// State records the state of a server.
func (r *Recorder) State(s *State) { r.add(line{State: s}) }

// Note records a text for the reader of the history.
func (r *Recorder) Note(format string, args ...any) {
	r.add(line{Note: &Note{At: r.Now(), Text: fmt.Sprintf(format, args...)}})
}

// Len returns the number of requests so far.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.h.Ops)
}

// History returns the records so far. The records are shared; the lists belong to the caller.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &History{
		Ops:      append([]*Op(nil), r.h.Ops...),
		Events:   append([]*Event(nil), r.h.Events...),
		Sessions: append([]*Session(nil), r.h.Sessions...),
		Holds:    append([]*Hold(nil), r.h.Holds...),
		States:   append([]*State(nil), r.h.States...),
		Notes:    append([]*Note(nil), r.h.Notes...),
	}
}

// Flush writes buffered records to the writer and returns the first write error.
// The caller must close the writer.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	if err := r.out.Flush(); r.err == nil {
		r.err = err
	}
	return r.err
}

// Read reads a Recorder's file. It drops a truncated last line, which a killed program leaves.
func Read(r io.Reader) (*History, error) {
	h := &History{}
	names := make(map[string]string) // a name is on thousands of lists of children
	dec := json.NewDecoder(bufio.NewReaderSize(r, 1<<20))
	for n := 1; ; n++ {
		var l line
		err := dec.Decode(&l)
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("history: record %d: %w", n, err)
		case !h.add(&l):
			return nil, fmt.Errorf("history: record %d is of no known kind", n)
		case l.Op != nil:
			share(l.Op.Children, names)
		}
	}
}

// share replaces strings with equal strings that are already known.
func share(list []string, known map[string]string) {
	for i, s := range list {
		if k, ok := known[s]; ok {
			list[i] = k
		} else {
			known[s] = s
		}
	}
}

// Write writes h in the form that Read reads.
func (h *History) Write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	enc := json.NewEncoder(out)
	for _, l := range h.lines() {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return out.Flush()
}

// lines wraps every record in a line.
func (h *History) lines() []line {
	var all []line
	for _, o := range h.Ops {
		all = append(all, line{Op: o})
	}
	for _, e := range h.Events {
		all = append(all, line{Event: e})
	}
	for _, s := range h.Sessions {
		all = append(all, line{Session: s})
	}
	for _, x := range h.Holds {
		all = append(all, line{Hold: x})
	}
	for _, s := range h.States {
		all = append(all, line{State: s})
	}
	for _, n := range h.Notes {
		all = append(all, line{Note: n})
	}
	return all
}
