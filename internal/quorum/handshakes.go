package quorum

import (
	"net"
	"slices"
	"sync"
)

// maxHandshakes bounds the connections that have not yet said who they
// are: each costs a goroutine and a few hundred bytes.
const maxHandshakes = 256

// handshakes are those that are under way, the oldest first. When there are too
// many the oldest is ended: a server needs milliseconds, and who holds a place for
// longer than all others has had its time. So whoever stalls keeps nobody out.
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
