package gozk

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Dialer connects a *zk.Conn, and listens to what the server grants. There has to
// be one for each *zk.Conn. All methods are safe for concurrent use.
type Dialer struct {
	dial zk.Dialer

	mu      sync.Mutex
	session int64 // of the last handshake
	timeout time.Duration
	breaks  int           // connections that have ended
	changed chan struct{} // closed and replaced when something has changed
}

// NewDialer returns a Dialer that connects by dial, for instance with TLS, or by
// net.DialTimeout if that is nil.
func NewDialer(dial zk.Dialer) *Dialer {
	if dial == nil {
		dial = net.DialTimeout
	}
	return &Dialer{dial: dial, changed: make(chan struct{})}
}

// Dial is for zk.WithDialer.
func (d *Dialer) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := d.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &listened{Conn: c, d: d}, nil
}

// granted returns the timeout of a session, if its handshake was heard.
func (d *Dialer) granted(session int64) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.timeout, d.session == session && session != 0
}

// broken returns how many connections have ended.
func (d *Dialer) broken() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.breaks
}

// change returns a channel that is closed at the next change.
func (d *Dialer) change() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// tell says that something may have changed.
func (d *Dialer) tell(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Where things stand in the answer to a handshake.
const (
	timeoutAt = 8
	sessionAt = 12
	headLen   = 20
)

// listened is a connection whose first bytes are listened to.
type listened struct {
	net.Conn
	d    *Dialer
	head []byte // only the reader's
	once sync.Once
}

func (l *listened) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if missing := headLen - len(l.head); missing > 0 {
		l.head = append(l.head, p[:min(n, missing)]...)
		if len(l.head) == headLen {
			l.handshake()
		}
	}
	if err != nil {
		l.end()
	}
	return n, err
}

// handshake notes what the server grants; a session id of 0 refuses a session.
func (l *listened) handshake() {
	ms := binary.BigEndian.Uint32(l.head[timeoutAt:])
	id := int64(binary.BigEndian.Uint64(l.head[sessionAt:])) //nolint:gosec // the same bits
	l.d.tell(func() { l.d.session, l.d.timeout = id, time.Duration(ms)*time.Millisecond })
}

func (l *listened) Close() error {
	l.end()
	return l.Conn.Close()
}

func (l *listened) end() {
	l.once.Do(func() { l.d.tell(func() { l.d.breaks++ }) })
}
