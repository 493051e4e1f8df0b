package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// maxFrame is longer than any reply to a client of this package.
const maxFrame = 16 << 20

// This auth packet makes the reads of a session linearizable.
const (
	optionsScheme = "zkgo"
	linearizable  = "reads=linearizable"
)

// errExpired is returned if the handshake says that the session is over.
var errExpired = errors.New("workload: the session has expired")

// call is a request that waits for its reply.
type call struct {
	op   *history.Op
	done chan struct{} // closed when the reply has arrived, or will not come
}

// conn is one connection of a client after its handshake. Three goroutines serve
// it: one reads, one writes, and one pings and gives up.
type conn struct {
	w       *world
	s       *session
	nc      net.Conn
	id      int
	server  int
	session int64
	timeout time.Duration
	done    chan struct{} // closed when the connection has ended and every request is recorded
	quit    chan struct{} // closed when it ends
	wake    chan struct{} // signals that there is something to write

	mu       sync.Mutex
	out      []byte
	sent     int
	linear   bool // reads from now on are linearizable
	xid      int32
	waiting  map[int32]*call // by xid
	closed   bool
	why      string
	ended    history.Time // when the client learned of the end
	heard    time.Time
	wrote    time.Time
	received int
}

// dial connects s to a server and attaches its session, or opens a new one. After
// an error other than errExpired, the server may or may not have attached the
// session.
func (w *world) dial(ctx context.Context, s *session, server int) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout/2)
	defer cancel()
	nc, err := w.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	c := &conn{w: w, s: s, nc: nc, id: w.rec.NewConn(), server: server, done: make(chan struct{}), quit: make(chan struct{}), wake: make(chan struct{}, 1),
		waiting: make(map[int32]*call), linear: slices.Contains(w.LinearServers, server)}
	err = c.handshake()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.heard, c.wrote = time.Now(), time.Now()
	return c, nil
}

// handshake attaches to the session and records the result.
func (c *conn) handshake() error {
	s := c.s
	ev := &history.Session{Client: s.client, Conn: c.id, Server: c.server, Session: s.id, Change: history.Attached, Call: c.w.rec.Now(), LastZxid: s.lastZxid()}
	req := proto.ConnectRequest{LastZxidSeen: ev.LastZxid, TimeOut: int32(c.w.Timeout.Milliseconds()), SessionID: s.id, Passwd: s.passwd, HasReadOnly: true}
	if _, err := c.nc.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
		return err
	}
	frame, err := readFrame(c.nc)
	if err != nil {
		return err
	}
	ev.At = c.w.rec.Now()
	r := proto.NewReader(frame)
	var resp proto.ConnectResponse
	if resp.Decode(&r); r.Err() != nil {
		return r.Err()
	}
	if resp.TimeOut <= 0 {
		ev.Change = history.Expired
		c.w.rec.Session(ev)
		return errExpired
	}
	if s.id == 0 {
		ev.Change = history.Created
	}
	s.id, s.passwd = resp.SessionID, resp.Passwd
	c.session, c.timeout = s.id, time.Duration(resp.TimeOut)*time.Millisecond
	ev.Session, ev.Timeout = s.id, int64(c.timeout)
	c.w.rec.Session(ev)
	return nil
}

// start starts the connection's goroutines.
func (c *conn) start() {
	var wg sync.WaitGroup
	wg.Go(c.read)
	wg.Go(c.write)
	wg.Go(c.watchTheTime)
	go func() {
		wg.Wait()
		c.giveUp()
		close(c.done)
	}()
}

// send queues a request and returns immediately.
func (c *conn) send(o *history.Op) *call {
	p := &call{op: o, done: make(chan struct{})}
	o.Client, o.Conn, o.Session, o.Server = c.s.client, c.id, c.session, c.server
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		close(p.done) // never sent, so it is not recorded
		return p
	}
	c.sent++
	o.Sent = c.sent
	o.Call = c.w.rec.Now()
	var xid int32
	switch o.Op {
	case proto.OpPing:
		xid = proto.XidPing
	case proto.OpSetWatches2:
		xid = proto.XidSetWatches
	case proto.OpAuth:
		xid = proto.XidAuth
		c.linear = true // replies are in the order of the requests
	case proto.OpGetData, proto.OpExists, proto.OpGetChildren2:
		o.Linear = c.linear
		c.xid++
		xid = c.xid
	default:
		c.xid++
		xid = c.xid
	}
	c.waiting[xid] = p
	h := proto.RequestHeader{Xid: xid, Op: o.Op}
	var mark int
	c.out, mark = proto.BeginFrame(c.out)
	c.out = h.Append(c.out)
	if rec := body(o); rec != nil {
		c.out = rec.Append(c.out)
	}
	c.out = proto.EndFrame(c.out, mark)
	c.wrote = time.Now()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return p
}

// write writes queued requests to the connection.
func (c *conn) write() {
	for {
		c.mu.Lock()
		b, closed := c.out, c.closed
		c.out = nil
		c.mu.Unlock()
		if closed {
			return
		}
		if len(b) == 0 {
			select {
			case <-c.wake:
			case <-c.quit:
			}
			continue
		}
		if _, err := c.nc.Write(b); err != nil {
			c.close("writing failed")
		}
	}
}

// read reads frames until the connection ends.
func (c *conn) read() {
	for {
		frame, err := readFrame(c.nc)
		if err == nil {
			err = c.frame(frame)
		}
		if err != nil {
			c.close(fmt.Sprintf("reading: %v", err))
			return
		}
	}
}

// frame records a reply or a notification.
func (c *conn) frame(frame []byte) error {
	now := c.w.rec.Now()
	r := proto.NewReader(frame)
	var h proto.ReplyHeader
	if h.Decode(&r); r.Err() != nil {
		return r.Err()
	}
	c.mu.Lock()
	c.heard = time.Now()
	c.received++
	seq := c.received
	var p *call
	if h.Xid != proto.XidNotification {
		p = c.waiting[h.Xid]
		delete(c.waiting, h.Xid)
	}
	c.mu.Unlock()
	if h.Xid == proto.XidNotification {
		return c.event(&h, &r, seq, now)
	}
	if p == nil { // record it for the checkers
		c.w.rec.Op(&history.Op{Client: c.s.client, Conn: c.id, Session: c.session, Server: c.server, Op: proto.OpError, Seq: seq, Return: now, Zxid: h.Zxid, Code: h.Err})
		return fmt.Errorf("a reply to xid %d, which nobody waits for", h.Xid)
	}
	o := p.op
	o.Seq, o.Return, o.Zxid, o.Code = seq, now, h.Zxid, h.Err
	err := decode(o, &r)
	if err == nil && r.Len() > 0 {
		err = fmt.Errorf("%d bytes after it", r.Len())
	}
	if err != nil {
		o.Bad = err.Error()
	}
	c.s.replied(o)
	c.w.rec.Op(o)
	close(p.done)
	return err
}

// event records a notification and passes it to the session.
func (c *conn) event(h *proto.ReplyHeader, r *proto.Reader, seq int, now history.Time) error {
	var e proto.WatcherEvent
	if e.Decode(r); r.Err() != nil {
		return r.Err()
	}
	ev := &history.Event{Client: c.s.client, Conn: c.id, Session: c.session, Server: c.server, Seq: seq, At: now, Type: proto.EventType(e.Type), Path: e.Path, Zxid: h.Zxid}
	c.w.rec.Event(ev)
	c.s.notified(ev)
	return nil
}

// watchTheTime pings after a third of the session timeout without a request, and
// gives up the connection after two thirds without a reply, as ZooKeeper's
// clients do.
func (c *conn) watchTheTime() {
	for {
		c.mu.Lock()
		closed, silent, idle, pinging := c.closed, time.Since(c.heard), time.Since(c.wrote), c.waiting[proto.XidPing] != nil
		c.mu.Unlock()
		limit, interval := c.timeout*2/3, c.timeout/3
		switch {
		case closed:
			return
		case silent >= limit:
			c.closeAt("silence", silent-limit)
			return
		case idle >= interval && !pinging:
			c.send(&history.Op{Op: proto.OpPing})
			continue
		}
		next := limit - silent
		if !pinging {
			next = min(next, interval-idle)
		}
		if !pause(context.Background(), next, c.quit) {
			return
		}
	}
}

// close ends the connection. Pending requests stay without a reply.
func (c *conn) close(why string) { c.closeAt(why, 0) }

// closeAt ends the connection as of some time ago.
func (c *conn) closeAt(why string, ago time.Duration) {
	c.mu.Lock()
	first := !c.closed
	if first {
		c.closed, c.why, c.ended = true, why, c.w.rec.Now()-int64(ago)
	}
	c.mu.Unlock()
	if first {
		close(c.quit)
		c.nc.Close()
	}
}

// giveUp records the requests that were never answered.
func (c *conn) giveUp() {
	c.mu.Lock()
	var lost []*call
	for _, p := range c.waiting {
		lost = append(lost, p)
	}
	why, at := c.why, c.ended
	c.mu.Unlock()
	slices.SortFunc(lost, func(a, b *call) int { return a.op.Sent - b.op.Sent })
	for _, p := range lost {
		c.w.rec.Op(p.op)
		close(p.done)
	}
	c.w.rec.Session(&history.Session{Client: c.s.client, Conn: c.id, Session: c.session, Server: c.server, Change: history.Lost, At: at, Why: why})
}

// readFrame reads one frame.
func readFrame(r io.Reader) ([]byte, error) {
	var size [proto.LengthSize]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, fmt.Errorf("workload: a frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
