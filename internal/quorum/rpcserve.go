package quorum

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// streamBuffer is the read buffer of a stream; longer fields bypass it.
	streamBuffer = 16 << 10
	// defaultMaxEntry bounds an entry unless TransportConfig says otherwise.
	defaultMaxEntry = 256 << 20
	// besideEntry is the memory that all messages being read may use, in addition to one
	// entry of the maximum size.
	besideEntry = 64 << 20
	// snapshotPrime is how much of a snapshot is checked before Raft sees it.
	snapshotPrime = 72 << 10
)

// serve reads and answers Raft's messages from a stream until it ends or breaks a rule.
func (t *Transport) serve(conn net.Conn, from Identity) {
	defer conn.Close()
	answered := make(chan struct{})
	defer close(answered)
	id := raft.ServerID(from.ServerID)
	hold := &holding{of: &t.budget, conn: conn}
	defer hold.release()
	d := &reader{r: bufio.NewReaderSize(conn, streamBuffer), reserve: hold.reserve}
	var out []byte
	for {
		kind, err := d.r.ReadByte()
		if err != nil {
			return
		}
		command, err := decodeRPC(d, kind, t.maxEntry())
		if err == nil {
			err = t.examine(id, command)
		}
		if err != nil {
			if t.reject(id, err) {
				_, _ = conn.Write(appendAnswer(nil, raft.RPCResponse{Error: err}))
			}
			return
		}
		answer, ok := t.dispatch(id, d.r, command, answered)
		hold.release()
		if !ok {
			return
		}
		out = appendAnswer(out[:0], answer)
		if _, err := conn.Write(out); err != nil {
			return
		}
		if _, snapshot := command.(*raft.InstallSnapshotRequest); snapshot {
			return // the stream still contains what Raft didn't read
		}
	}
}

// dispatch passes a message to Raft and returns the answer; false if the transport was
// closed in the meantime, or if the stream broke in a snapshot. answered is closed when the
// stream has ended.
func (t *Transport) dispatch(from raft.ServerID, r io.Reader, command any, answered <-chan struct{}) (raft.RPCResponse, bool) {
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: command, RespChan: answer}
	broken := func() bool { return false }
	if q, ok := command.(*raft.InstallSnapshotRequest); ok {
		rpc.Reader = io.LimitReader(r, q.Size)
		if t.cfg.CheckSnapshot != nil {
			checked := checkWhileReading(r, q.Size, func(r io.Reader) error { return t.cfg.CheckSnapshot(q, r) })
			defer func() {
				checked.close()
				if rule := (*ruleError)(nil); errors.As(checked.err, &rule) {
					t.reject(from, rule)
				}
			}()
			rpc.Reader, broken = checked, checked.broken
			if checked.prime(snapshotPrime) != nil {
				return raft.RPCResponse{}, false // Raft would adopt the term before it reads the snapshot
			}
		}
	}
	if beat := t.heartbeat.Load(); beat != nil && isHeartbeat(command) {
		(*beat)(rpc)
	} else {
		select {
		case t.inbound <- incoming{rpc, answered}:
		case <-t.done:
			return raft.RPCResponse{}, false
		}
	}
	select {
	case a := <-answer:
		// If the stream ends, the leader sends the snapshot again without delay. We answer
		// with an error only if Raft on this server fails, e.g. because its disk is full.
		return a, a.Error == nil || !broken()
	case <-t.done:
		return raft.RPCResponse{}, false
	}
}

// isHeartbeat recognizes a heartbeat as raft.NetworkTransport does.
func isHeartbeat(command any) bool {
	a, ok := command.(*raft.AppendEntriesRequest)
	return ok && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}

func (t *Transport) maxEntry() int {
	if t.cfg.MaxEntry > 0 {
		return t.cfg.MaxEntry
	}
	return defaultMaxEntry
}

// reject records a message that broke a rule. It returns false if the stream just ended.
func (t *Transport) reject(from raft.ServerID, err error) bool {
	var net net.Error
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &net) {
		return false
	}
	rule := "a message that cannot be read"
	if r := (*ruleError)(nil); errors.As(err, &r) {
		rule = r.rule
	}
	t.cfg.Hub.reject(from, rule, err)
	return true
}

// rejections counts the refused Raft messages.
type rejections struct {
	total atomic.Int64

	mu    sync.Mutex
	since map[string]int64     // refused since the last log line, by server and rule
	told  map[string]time.Time // time of the last log line
}

// Rejected returns the number of Raft messages that this server has refused since its
// start.
func (h *Hub) Rejected() int64 { return h.rejected.total.Load() }

// reject counts a refused message, and logs it at most once per refusalPause.
func (h *Hub) reject(from raft.ServerID, rule string, err error) {
	r := &h.rejected
	r.total.Add(1)
	key := string(from) + " " + rule
	now := time.Now()
	r.mu.Lock()
	if r.since == nil || len(r.since) > maxHandshakes {
		r.since, r.told = make(map[string]int64), make(map[string]time.Time)
	}
	r.since[key]++
	count, tell := r.since[key], now.Sub(r.told[key]) >= refusalPause
	if tell {
		r.since[key], r.told[key] = 0, now
	}
	r.mu.Unlock()
	if tell {
		h.log.Error("refused a Raft message that no correct server sends, and closed its stream", "from", string(from), "err", err.Error(), "count", count)
	}
}

// budget limits the memory of all messages that are being read. If it runs out, we close the
// stream that holds the most.
type budget struct {
	mu    sync.Mutex
	limit int64
	used  int64
	holds map[*holding]struct{}
}

// holding is one stream's share of a budget.
type holding struct {
	of     *budget
	conn   net.Conn
	bytes  int64
	closed bool
}

var errNoRoom = fmt.Errorf("%w: of all messages that are being read this one is the largest, and there is no more memory for them", errTooLong)

func (h *holding) reserve(n int) error {
	r := h.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.closed {
		return errNoRoom
	}
	if r.holds == nil {
		r.holds = make(map[*holding]struct{})
	}
	r.holds[h] = struct{}{}
	h.bytes += int64(n)
	r.used += int64(n)
	for r.used > r.limit {
		largest := h
		for o := range r.holds {
			if o.bytes > largest.bytes {
				largest = o
			}
		}
		largest.drop()
		largest.closed = true
		if largest == h {
			return errNoRoom
		}
		_ = largest.conn.Close()
	}
	return nil
}

// drop releases what h holds. The budget is locked.
func (h *holding) drop() {
	h.of.used -= h.bytes
	h.bytes = 0
	delete(h.of.holds, h)
}

func (h *holding) release() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.drop()
}

// checkedReader passes on a stream while a check reads the same bytes. It reports EOF only
// after the check has passed. A stream that ends early breaks no rule: its sender was
// stopped, or the connection was lost.
type checkedReader struct {
	r       io.Reader
	left    int64 // bytes still to come
	w       *io.PipeWriter
	verdict chan error
	head    []byte // already read and checked
	err     error
}

func checkWhileReading(r io.Reader, size int64, check func(io.Reader) error) *checkedReader {
	in, w := io.Pipe()
	c := &checkedReader{r: io.LimitReader(r, size), left: size, w: w, verdict: make(chan error, 1)}
	go func() {
		err := check(in)
		if err != nil {
			err = breaks("a snapshot that is not what it says", "%v", err)
			_ = in.CloseWithError(err)
		} else {
			_, _ = io.Copy(io.Discard, in)
		}
		c.verdict <- err
	}()
	return c
}

// prime reads and checks up to n bytes, which Read returns later. It returns an error if
// they are wrong.
func (c *checkedReader) prime(n int) error {
	head := make([]byte, n)
	for len(c.head) < n {
		k, err := c.read(head[len(c.head):])
		c.head = head[:len(c.head)+k]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if n := copy(p, c.head); n > 0 {
		c.head = c.head[n:]
		return n, nil
	}
	return c.read(p)
}

func (c *checkedReader) read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	if errors.Is(err, io.EOF) && c.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if n > 0 {
		if _, werr := c.w.Write(p[:n]); werr != nil {
			c.err = werr
			return 0, werr
		}
	}
	if errors.Is(err, io.EOF) {
		_ = c.w.Close()
		if verdict := <-c.verdict; verdict != nil {
			err = verdict
		}
	}
	c.err = err
	return n, err
}

// broken reports whether the stream failed, rather than the check.
func (c *checkedReader) broken() bool {
	rule := (*ruleError)(nil)
	return c.err != nil && !errors.Is(c.err, io.EOF) && !errors.As(c.err, &rule)
}

// close ends the check when the rest of the stream is not read.
func (c *checkedReader) close() { _ = c.w.CloseWithError(io.ErrUnexpectedEOF) }

// answerConn bounds the answer of a dialled server to one message.
type answerConn struct {
	net.Conn
	left atomic.Int64
}

// maxAnswer bounds an answer: a text and a few numbers.
const maxAnswer = 16 << 10

func (c *answerConn) Write(p []byte) (int, error) {
	c.left.Store(maxAnswer)
	return c.Conn.Write(p)
}

func (c *answerConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, fmt.Errorf("%w: an answer of more than %d bytes", errTooLong, maxAnswer)
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}
