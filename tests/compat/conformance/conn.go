package conformance

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// patience bounds every wait for the server. We measure nothing with this limit: if a server is
// slower, it hangs.
const patience = 30 * time.Second

// largestFrame bounds the frames that the runner accepts from a server.
const largestFrame = 64 << 20

// conn is one connection of a script.
type conn struct {
	name    string
	net     net.Conn
	in      *bufio.Reader
	eof     bool
	pending []request
	xid     int32

	session  int64
	password []byte
	zxid     int64 // of the last reply
}

// entry is one received frame, as text.
type entry struct {
	text  string
	event bool
	auth  bool
}

var errRefused = errors.New("connection refused")

func dial(name, addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return &conn{name: name, net: c, in: bufio.NewReader(c)}, nil
}

// passwordOrNil returns the password of the connection, if there is a connection.
func (c *conn) passwordOrNil() []byte {
	if c == nil {
		return nil
	}
	return c.password
}

func (c *conn) nextXid() int32 {
	c.xid++
	return c.xid
}

// write sends in the background: if a server replied before it has read everything, both
// sides could block. We notice a write error as the end of the connection on the reading
// side.
func (c *conn) write(b []byte, pieces bool) {
	_ = c.net.SetWriteDeadline(time.Now().Add(patience)) // fails only on a closed socket
	go func() {
		if !pieces {
			_, _ = c.net.Write(b)
			return
		}
		for i := range b {
			if _, err := c.net.Write(b[i : i+1]); err != nil {
				return
			}
		}
	}()
}

// frame reads one frame. It returns io.EOF however the connection ended.
func (c *conn) frame() ([]byte, error) {
	if c.eof {
		return nil, io.EOF
	}
	if err := c.net.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	var head [4]byte
	if n, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, c.ended(head[:n], err)
	}
	size := int(int32(binary.BigEndian.Uint32(head[:])))
	if size < 0 || size > largestFrame {
		return nil, fmt.Errorf("%s: the server sent a frame of length %d", c.name, size)
	}
	payload := make([]byte, size)
	if n, err := io.ReadFull(c.in, payload); err != nil {
		return nil, c.ended(append(head[:], payload[:n]...), err)
	}
	return payload, nil
}

// ended distinguishes the end of the connection from a server that hangs, and
// from an end in the middle of a frame.
func (c *conn) ended(partial []byte, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s: nothing from the server for %v, %d requests unanswered", c.name, patience, len(c.pending))
	}
	c.eof = true
	if len(partial) > 0 {
		return fmt.Errorf("%s: the connection ended in the middle of a frame: %x", c.name, partial)
	}
	return io.EOF
}

// match removes from the queue the request that a reply with this xid answers.
// Replies come in the order of the requests, except for auth, which may overtake,
// and for requests marked "maybe", which may be dropped.
func (c *conn) match(xid int32) (request, bool) {
	inOrder := true // no request that must be answered first precedes it
	for i, r := range c.pending {
		mine := r.xid == xid || i == 0 && r.op.reply == shapeHandshake
		if mine && (inOrder || r.op.code == codeAuth || r.has("maybe")) {
			c.pending = slices.Delete(c.pending, i, i+1)
			return r, true
		}
		inOrder = inOrder && r.has("maybe")
	}
	return request{}, false
}

// isEvent distinguishes a notification from the reply to a request with xid −1.
func (c *conn) isEvent(xid int32) bool {
	return xid == xidEvent && (len(c.pending) == 0 || c.pending[0].xid != xidEvent)
}

// writes are the operations that carry the zxid of their transaction in the reply.
var writes = []int32{1, 2, 5, 7, codeMulti, 15, 16, 19, 21, codeCloseSession}

// take decodes one received frame. The entry is nil for a reply to a "maybe" request, which we
// don't record.
func (c *conn) take(payload []byte, n *normaliser, sent time.Time) (*entry, error) {
	if len(payload) < replyHeader {
		return nil, fmt.Errorf("%s: a frame without a reply header: %x", c.name, payload)
	}
	d := &decoder{b: payload}
	xid, zxid := d.int(), d.long()
	if c.isEvent(xid) {
		return &entry{text: n.event(payload), event: true}, nil
	}
	r, ok := c.match(xid)
	if !ok {
		want := "nothing"
		if len(c.pending) > 0 {
			want = fmt.Sprint("xid ", c.pending[0].xid)
			c.pending = c.pending[1:]
		}
		return &entry{text: fmt.Sprintf("OUT OF ORDER, want %s: %x", want, payload)}, nil
	}
	if slices.Contains(writes, r.op.code) && zxid > 0 {
		n.wrote(zxid, window{sent, time.Now()})
	}
	if zxid > 0 && r.op.reply != shapeHandshake {
		c.zxid = zxid
	}
	shown := n.reply(r, payload)
	if r.has("maybe") {
		return nil, nil
	}
	return &entry{text: shown, auth: r.op.code == codeAuth}, nil
}
