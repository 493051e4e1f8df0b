package gozk

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Dialer connects a *zk.Conn and reads the session timeout that the server grants.
// Each *zk.Conn needs its own Dialer. All methods are safe for concurrent use.
type Dialer struct {
	dial zk.Dialer

	mu      sync.Mutex
	session int64 // session id of the last handshake
	timeout time.Duration
	breaks  int           // connections that have ended
	changed chan struct{} // closed and replaced when something has changed
}

// NewDialer returns a Dialer that connects with dial, e.g. with TLS, or with
// net.DialTimeout if dial is nil.
func NewDialer(dial zk.Dialer) *Dialer {
	if dial == nil {
		dial = net.DialTimeout
	}
	return &Dialer{dial: dial, changed: make(chan struct{})}
}

// Dial is the function to pass to zk.WithDialer.
func (d *Dialer) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := d.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &listened{Conn: c, d: d}, nil
}

// granted returns the timeout of a session, and true if the Dialer saw its handshake.
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

// tell calls what and wakes the waiters.
func (d *Dialer) tell(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Offsets in the reply to a handshake.
const (
	timeoutAt = 8
	sessionAt = 12
	headLen   = 20
)

// listened is a connection that inspects the first bytes it reads.
type listened struct {
	net.Conn
	d    *Dialer
	head []byte // only Read uses it
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

// handshake records the session and the timeout that the server grants. A session id of 0
// means that the server has rejected the session.
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
