package quorum

import (
	"net"
	"slices"
	"sync"
)

// maxHandshakes limits the connections whose callers haven't identified themselves yet:
// each costs a goroutine and a few hundred bytes.
const maxHandshakes = 256

// handshakes holds the connections whose handshake is in progress, oldest first. If there
// are too many, we close the oldest: a server needs only milliseconds, so the connection
// that has been open for longest has had enough time. This way, a caller that stalls can't
// lock out other servers.
type handshakes struct {
	mu   sync.Mutex
	open []net.Conn
}

func (h *handshakes) begin(conn net.Conn) {
	h.mu.Lock()
	h.open = append(h.open, conn)
	var oldest net.Conn
	if len(h.open) > maxHandshakes {
		oldest = h.open[0]
		h.open = slices.Delete(h.open, 0, 1)
	}
	h.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}

// end forgets a connection whose handshake is over.
func (h *handshakes) end(conn net.Conn) {
	h.mu.Lock()
	if i := slices.Index(h.open, conn); i >= 0 {
		h.open = slices.Delete(h.open, i, i+1)
	}
	h.mu.Unlock()
}
