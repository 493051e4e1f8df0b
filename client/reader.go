package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// readBuffer is the size of a link's input buffer. Frames that fit are decoded
// in place.
const readBuffer = 64 << 10

// frameReader cuts a stream into frames.
type frameReader struct {
	r     io.Reader
	limit int
	buf   []byte // buf[off:end] is unread
	off   int
	end   int
	full  bool // the last read filled buf, so there may be more to read
}

func newFrameReader(r io.Reader, limit int) *frameReader {
	return &frameReader{r: r, limit: limit, buf: make([]byte, 4096)}
}

// next returns the next frame's payload, which is valid until the following call. We don't
// trust a frame's length: the buffer only grows as data arrives.
func (f *frameReader) next() ([]byte, error) {
	if err := f.fill(proto.LengthSize); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(f.buf[f.off:])))
	if n < 0 || n > f.limit {
		return nil, fmt.Errorf("%w: a frame of length %d, the limit is %d", ErrProtocol, n, f.limit)
	}
	if err := f.fill(proto.LengthSize + n); err != nil {
		return nil, err
	}
	payload := f.buf[f.off+proto.LengthSize : f.off+proto.LengthSize+n]
	f.off += proto.LengthSize + n
	return payload, nil
}

// stranger returns an error that describes a peer that doesn't begin like a ZooKeeper
// server, or nil. We look at the first byte only: the first frame is short, so its length
// begins with a zero, unlike text or a TLS record.
func (f *frameReader) stranger() error {
	const tlsAlert, tlsMajor = 0x15, 0x03
	head := f.buf[:min(f.end, 16)]
	switch {
	case len(head) < 3 || head[0] == 0:
		return nil
	case head[0] == tlsAlert && head[1] == tlsMajor:
		return fmt.Errorf("%w: it answered with a TLS alert", ErrTLSRequired)
	}
	for _, c := range head[:min(len(head), proto.LengthSize)] {
		if c < ' ' || c > '~' {
			return nil
		}
	}
	return fmt.Errorf("%w: its answer begins with %q, so it is not a ZooKeeper server", ErrProtocol, head)
}

// fill reads until n bytes are available.
func (f *frameReader) fill(n int) error {
	for f.end-f.off < n {
		f.room(n)
		m, err := f.r.Read(f.buf[f.end:])
		f.end += m
		f.full = f.end == len(f.buf)
		if err != nil && f.end-f.off < n {
			if errors.Is(err, io.EOF) && f.end > f.off {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// room makes space after the unread data. It grows the buffer to at most twice its
// size.
func (f *frameReader) room(n int) {
	if f.off == f.end {
		f.off, f.end = 0, 0
		if len(f.buf) > readBuffer && n <= readBuffer {
			f.buf = make([]byte, readBuffer) // we don't keep the memory of one large frame forever
		}
		if f.full && len(f.buf) < readBuffer {
			f.buf = make([]byte, 2*len(f.buf))
		}
	}
	if f.end < len(f.buf) && f.off+n <= len(f.buf) {
		return
	}
	if f.off > 0 {
		copy(f.buf, f.buf[f.off:f.end])
		f.off, f.end = 0, f.end-f.off
	}
	if f.end == len(f.buf) || len(f.buf) < readBuffer && n > len(f.buf) {
		f.buf = append(make([]byte, 0, 2*len(f.buf)), f.buf[:f.end]...)
		f.buf = f.buf[:cap(f.buf)]
	}
}

// timedReader records the time of the last read that returned data.
type timedReader struct{ l *link }

// Read implements io.Reader.
func (t timedReader) Read(b []byte) (int, error) {
	n, err := t.l.conn.Read(b)
	if n > 0 {
		now := time.Now()
		t.l.core.mu.Lock()
		t.l.times.received = now
		t.l.core.mu.Unlock()
	}
	return n, err
}

// read is the reader goroutine.
func (l *link) read(f *frameReader) {
	defer l.wg.Done()
	f.r = timedReader{l}
	for {
		frame, err := f.next()
		if err == nil {
			err = l.frame(frame)
		}
		if err != nil {
			l.fail(fmt.Errorf("reading from %s: %w", l.addr, err))
			return
		}
	}
}

// frame handles one frame.
func (l *link) frame(frame []byte) error {
	r := proto.NewReader(frame)
	var h proto.ReplyHeader
	h.Decode(&r)
	if r.Err() != nil {
		return fmt.Errorf("%w: a frame of %d bytes has no reply header", ErrProtocol, len(frame))
	}
	switch h.Xid {
	case proto.XidNotification:
		return l.notification(&h, &r)
	case proto.XidPing:
		return l.pong()
	case proto.XidAuth:
		return l.authReply(&h)
	}
	return l.reply(&h, &r)
}

func (l *link) notification(h *proto.ReplyHeader, r *proto.Reader) error {
	var e proto.WatcherEvent
	e.Decode(r)
	if r.Err() != nil {
		return fmt.Errorf("%w: a notification: %w", ErrProtocol, r.Err())
	}
	c := l.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.events != nil {
		c.cfg.events(Event{Type: EventType(e.Type), Path: e.Path, Zxid: h.Zxid})
	}
	c.watches.fire(EventType(e.Type), e.Path, h.Zxid)
	return nil
}

func (l *link) pong() error {
	c := l.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.times.pingAt.IsZero() {
		return fmt.Errorf("%w: a reply to a ping that was not sent", ErrProtocol)
	}
	c.session.contact(l.times.pingAt, false)
	l.times.pingAt = time.Time{}
	return nil
}

func (l *link) authReply(h *proto.ReplyHeader) error {
	c := l.core
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := l.requests.auths.pop()
	if !ok {
		return fmt.Errorf("%w: a reply to an auth that was not sent", ErrProtocol)
	}
	a.ready <- h.Err
	return nil
}

// reply delivers a reply to the oldest pending call.
func (l *link) reply(h *proto.ReplyHeader, r *proto.Reader) error {
	k, err := l.match(h)
	if err != nil {
		return err
	}
	k.zxid, k.code = h.Zxid, h.Err
	if h.Err == 0 {
		if k.decode(k.op, r); r.Err() != nil {
			err = fmt.Errorf("%w: the answer to %v: %w", ErrProtocol, k.op, r.Err())
			k.err = &brokenError{code: ErrConnectionLoss, sent: true, cause: err}
		}
	}
	l.settle(k)
	return err
}

// match removes the call that this reply answers, and notes that a server has answered.
func (l *link) match(h *proto.ReplyHeader) (*call, error) {
	c := l.core
	c.mu.Lock()
	defer c.mu.Unlock()
	k, at, err := l.requests.answered(h)
	if err != nil {
		return nil, err
	}
	c.session.contact(at, confirms(k.op, h))
	if h.Zxid > 0 {
		c.session.zxid = max(c.session.zxid, h.Zxid)
	}
	k.taken = !k.abandoned
	return k, nil
}

// settle completes a call after its reply is decoded. We arm watches before we read the next
// frame, because that frame may be their event.
func (l *link) settle(k *call) {
	c := l.core
	if k.guards != nil && k.code != 0 {
		k.guards.refused = k.code
	}
	if k.watcher != nil {
		c.mu.Lock()
		c.watches.armed(k, l)
		c.mu.Unlock()
	}
	if k.refused != 0 {
		k.code = k.refused // the data may be older than the sync
	}
	if k.taken {
		k.ready <- struct{}{}
		return
	}
	c.free(k)
}

// confirms reports whether a reply shows that the leader knew the session. Replies to reads
// and pings don't tell us that, because a server that has lost its leader may still send
// them.
func confirms(op proto.Op, h *proto.ReplyHeader) bool {
	if op != proto.OpSync && !op.Transaction() || h.Zxid <= 0 {
		return false
	}
	switch h.Err {
	case ErrNotReadOnly, ErrThrottledOp, ErrMarshalling, ErrUnimplemented, proto.ErrSessionClosedRequireSASL:
		return false
	}
	return true
}
