package checkers_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/zkgo/zkgo/proto"
)

// proxy is a connection between a client and a real server that tampers with frames. It plants
// faults in a server's replies, so the server needs no switch for them.
type proxy struct {
	net.Conn
	server int
	bug    *bug

	mu       sync.Mutex
	up, down bool                            // the handshake has passed
	out      []byte                          // frames that the client has yet to read
	requests map[int32]request               // by xid, as the client sent them
	answers  map[int32]func([]byte) [][]byte // functions that replace the reply to a request
	held     [][]byte                        // delayed frames
}

// request is a client's request.
type request struct {
	op   proto.Op
	path string
	body []byte
}

// bug is a fault, with a counter.
type bug struct {
	mu       sync.Mutex
	happened int
	memory   map[string][]byte // shared by all connections

	// up gets a request from the client and returns the frames that are sent
	// instead.
	up func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte
	// reply gets a reply to a client's request, event a notification; they return
	// the frames that the client gets instead.
	reply func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte
	event func(p *proxy, e *proto.WatcherEvent, frame []byte) [][]byte
	// end is called when the server has closed the connection.
	end func(p *proxy)
}

// happens counts an opportunity for the fault, and reports true for every nth.
func (b *bug) happens(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		b.memory = make(map[string][]byte)
	}
	b.happened++
	return b.happened%n == 0
}

func newProxy(server int, nc net.Conn, b *bug) *proxy {
	return &proxy{Conn: nc, server: server, bug: b, requests: make(map[int32]request), answers: make(map[int32]func([]byte) [][]byte)}
}

// Write accepts whole frames from the client.
func (p *proxy) Write(b []byte) (int, error) {
	var out []byte
	for rest := b; len(rest) > 0; {
		n := proto.LengthSize + int(binary.BigEndian.Uint32(rest))
		for _, f := range p.sent(rest[proto.LengthSize:n]) {
			out = proto.AppendFrame(out, f)
		}
		rest = rest[n:]
	}
	if len(out) == 0 {
		return len(b), nil
	}
	_, err := p.Conn.Write(out)
	return len(b), err
}

// sent processes one frame from the client.
func (p *proxy) sent(frame []byte) [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.up {
		p.up = true
		return [][]byte{frame}
	}
	r := proto.NewReader(frame)
	var h proto.RequestHeader
	h.Decode(&r)
	q := request{op: h.Op, body: r.Rest()}
	switch h.Op {
	case proto.OpGetData, proto.OpExists, proto.OpGetChildren2, proto.OpSetData, proto.OpCreate2, proto.OpDelete, proto.OpSync, proto.OpCreateContainer:
		q.path = r.String()
	}
	p.requests[h.Xid] = q
	if p.bug.up == nil {
		return [][]byte{frame}
	}
	return p.bug.up(p, h, q, frame)
}

// Read returns the frames that the client should see.
func (p *proxy) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		if len(p.out) > 0 {
			n := copy(b, p.out)
			p.out = p.out[n:]
			p.mu.Unlock()
			return n, nil
		}
		p.mu.Unlock()
		frame, err := frameOf(p.Conn)
		if err != nil {
			if p.bug.end != nil {
				p.bug.end(p)
			}
			return 0, err
		}
		p.mu.Lock()
		for _, f := range p.received(frame) {
			p.out = proto.AppendFrame(p.out, f)
		}
		p.mu.Unlock()
	}
}

func frameOf(r io.Reader) ([]byte, error) {
	var size [proto.LengthSize]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// received processes one frame from the server.
func (p *proxy) received(frame []byte) [][]byte {
	if !p.down {
		p.down = true
		return [][]byte{frame}
	}
	r := proto.NewReader(frame)
	var h proto.ReplyHeader
	h.Decode(&r)
	if h.Xid == proto.XidNotification {
		if p.bug.event == nil {
			return [][]byte{frame}
		}
		var e proto.WatcherEvent
		e.Decode(&r)
		return p.bug.event(p, &e, frame)
	}
	if f := p.answers[h.Xid]; f != nil {
		delete(p.answers, h.Xid)
		return f(frame)
	}
	if p.bug.reply == nil {
		return [][]byte{frame}
	}
	return p.bug.reply(p, &h, p.requests[h.Xid], r.Rest())
}

// frameFor encodes a request or a reply.
func frameFor(h interface{ Append([]byte) []byte }, body []byte) []byte {
	return append(h.Append(nil), body...)
}

// instead sends another request in place of the client's; answer converts the
// reply to it.
func (p *proxy) instead(xid int32, op proto.Op, body proto.Record, answer func(h proto.ReplyHeader, body []byte) []byte) [][]byte {
	p.answers[xid] = func(frame []byte) [][]byte {
		r := proto.NewReader(frame)
		var h proto.ReplyHeader
		h.Decode(&r)
		return [][]byte{answer(h, r.Rest())}
	}
	return [][]byte{frameFor(&proto.RequestHeader{Xid: xid, Op: op}, body.Append(nil))}
}
