package conformance

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// runner runs one script against one server.
type runner struct {
	addr  string
	norm  *normaliser
	marks marks
	conns map[string]*conn
	order []string // names of the connections in order of first appearance
	out   strings.Builder
}

// Run runs the script against the server at addr, which must be fresh, and
// returns the transcript. On an error the transcript ends where the script
// stopped.
func Run(s *Script, addr string) (string, error) {
	flat, err := expand(s.body, nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	base, err := probe(addr)
	if err != nil {
		return "", fmt.Errorf("%s: before the script: %w", s.Name, err)
	}
	r := &runner{addr: addr, norm: newNormaliser(base), marks: marks{}, conns: map[string]*conn{}}
	defer r.hangUp()
	for _, l := range flat {
		if err := r.statement(l); err != nil {
			return r.out.String(), fmt.Errorf("%s:%d: %v: %w", s.Name, l.no, l, err)
		}
	}
	if err := r.drainAll(line{words: []string{"drain"}}); err != nil {
		return r.out.String(), fmt.Errorf("%s: draining at the end: %w", s.Name, err)
	}
	return r.out.String(), nil
}

// probe opens and closes a session and returns the zxid of opening it. The zxids
// of the transcript are relative to it.
func probe(addr string) (int64, error) {
	r := &runner{addr: addr, norm: newNormaliser(0), conns: map[string]*conn{}}
	defer r.hangUp()
	if err := r.connect(line{words: []string{"connect", "probe"}}); err != nil {
		return 0, err
	}
	c := r.conns["probe"]
	if c == nil {
		return 0, errRefused
	}
	if err := r.send(c, []line{{words: []string{"ping"}}}, nil); err != nil {
		return 0, err
	}
	base := c.zxid
	if base <= 0 {
		return 0, fmt.Errorf("ping answered with zxid %d", base)
	}
	return base, r.send(c, []line{{words: []string{"closeSession"}}}, nil)
}

func (r *runner) hangUp() {
	for _, c := range r.conns {
		_ = c.net.Close()
	}
}

func (r *runner) print(format string, args ...any) {
	fmt.Fprintf(&r.out, format+"\n", args...)
}

func (r *runner) statement(l line) error {
	r.print("> %v", l)
	for _, inner := range l.block {
		r.echo(inner, 1)
	}
	switch l.words[0] {
	case "connect":
		return r.connect(l)
	case "drain":
		return r.drainAll(l)
	case "note":
		return nil
	case "tick":
		tick()
		return nil
	}
	c, ok := r.conns[l.words[0]]
	if !ok {
		return fmt.Errorf("no connection %q", l.words[0])
	}
	verb := ""
	if len(l.words) > 1 {
		verb = l.words[1]
	}
	switch verb {
	case "", "strict", "split", "closes", "unordered":
		return r.send(c, l.block, l.words[1:])
	case "eof":
		return r.untilEOF(c)
	case "drop":
		c.eof = true
		return c.net.Close()
	case "drain":
		return r.drain(c, l.words[2:])
	case "await":
		return r.await(c, l.words[2:])
	case "mark":
		r.marks[l.words[2]] = c.zxid
		return nil
	}
	one := line{no: l.no, words: l.words[1:], block: l.block}
	return r.send(c, []line{one}, l.words[1:])
}

func (r *runner) echo(l line, depth int) {
	r.print(">%s%v", strings.Repeat("  ", depth), l)
	for _, inner := range l.block {
		r.echo(inner, depth+1)
	}
}

// tick waits until the clock is clearly later than the time of any transaction so far, so
// that we detect a stale time.
func tick() {
	timer := time.NewTimer(4 * clockSlack)
	<-timer.C
}

// errEnded is returned if a script uses a connection that has ended: either the
// script expects something else from the server, or the server is wrong.
var errEnded = errors.New("the connection has ended")

// send sends the requests in one segment and records what arrives until all are
// answered or the connection ends; "closes" waits for the end in any case.
func (r *runner) send(c *conn, requests []line, flags []string) error {
	if c.eof {
		return errEnded
	}
	wire, closing, err := r.encode(c, requests)
	if err != nil {
		return err
	}
	closes := slices.Contains(flags, "closes")
	sent := time.Now()
	c.write(wire, slices.Contains(flags, "split"))
	entries, err := r.collect(c, sent, func([]entry) bool { return len(c.pending) == 0 && !closes })
	r.record(c, entries, flags)
	if err != nil {
		return r.noteEOF(c, err)
	}
	if closing {
		return r.untilEOF(c)
	}
	return nil
}

// encode encodes the requests and appends them to the pending queue.
func (r *runner) encode(c *conn, requests []line) (wire []byte, closing bool, err error) {
	for _, l := range requests {
		if l.words[0] == "raw" {
			for _, word := range l.words[1:] {
				b, err := literal("hex:" + word)
				if err != nil {
					return nil, false, err
				}
				wire = append(wire, b...)
			}
			continue
		}
		q, err := r.marks.request(l, l.words, c.nextXid)
		if err != nil {
			return nil, false, err
		}
		wire = append(wire, q.wire...)
		c.pending = append(c.pending, q)
		closing = closing || q.op.code == codeCloseSession
	}
	return wire, closing, nil
}

// collect reads frames until enough returns true.
func (r *runner) collect(c *conn, sent time.Time, enough func([]entry) bool) ([]entry, error) {
	var entries []entry
	for !enough(entries) {
		payload, err := c.frame()
		if err != nil {
			return entries, err
		}
		e, err := c.take(payload, r.norm, sent)
		if err != nil {
			return entries, err
		}
		if e != nil {
			entries = append(entries, *e)
		}
	}
	return entries, nil
}

// record prints the received entries, in the order of arrival except where ZooKeeper leaves the
// order open: the replies to auth come first unless the statement is strict, and neighbouring
// events are sorted if it is unordered.
func (r *runner) record(c *conn, entries []entry, flags []string) {
	if !slices.Contains(flags, "strict") {
		slices.SortStableFunc(entries, func(a, b entry) int { return rank(a) - rank(b) })
	}
	if slices.Contains(flags, "unordered") {
		for start := 0; start < len(entries); start++ {
			end := start
			for end < len(entries) && entries[end].event {
				end++
			}
			slices.SortFunc(entries[start:end], func(a, b entry) int { return strings.Compare(a.text, b.text) })
			start = end
		}
	}
	for _, e := range entries {
		r.print("%s <- %s", c.name, e.text)
	}
}

func rank(e entry) int {
	if e.auth {
		return 0
	}
	return 1
}

// noteEOF records the end of a connection that the server closed.
func (r *runner) noteEOF(c *conn, err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	unanswered := 0
	for _, q := range c.pending {
		if !q.has("maybe") {
			unanswered++
		}
	}
	c.pending = nil
	if unanswered > 0 {
		r.print("%s <- end of connection, %d unanswered", c.name, unanswered)
	} else {
		r.print("%s <- end of connection", c.name)
	}
	return nil
}

func (r *runner) untilEOF(c *conn) error {
	entries, err := r.collect(c, time.Now(), func([]entry) bool { return false })
	r.record(c, entries, nil)
	return r.noteEOF(c, err)
}

// drain sends a ping and records what arrives before its reply: every event
// caused by a request that was answered earlier has arrived by then.
func (r *runner) drain(c *conn, flags []string) error {
	if err := r.send(c, []line{{words: []string{"ping"}}}, flags); err != nil {
		return err
	}
	if c.eof {
		return fmt.Errorf("%s: %w", c.name, errEnded)
	}
	return nil
}

func (r *runner) drainAll(l line) error {
	for _, name := range r.order {
		if c := r.conns[name]; !c.eof {
			if err := r.drain(c, l.words[1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// await waits for "await N" events that no request causes, e.g. a session that
// expires or a TTL node that is deleted.
func (r *runner) await(c *conn, words []string) error {
	want := 1
	if len(words) > 0 {
		n, err := strconv.Atoi(words[0])
		if err != nil {
			return err
		}
		want = n
	}
	entries, err := r.collect(c, time.Now(), func(got []entry) bool { return len(got) >= want })
	r.record(c, entries, words)
	if err != nil {
		return r.noteEOF(c, err)
	}
	return nil
}
