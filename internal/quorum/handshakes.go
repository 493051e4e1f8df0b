package quorum

import (
	"net"
	"slices"
	"sync"
)

// maxHandshakes limits the connections from callers that haven't identified themselves
// yet. Each costs a goroutine and a few hundred bytes.
const maxHandshakes = 256

// handshakes is the list of connections with a handshake in progress, oldest first. If
// there are too many, we close the oldest, so a caller that stalls can't lock out other
// servers. A handshake needs only milliseconds, so the oldest connection has had enough
// time.
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

// end removes a connection after its handshake.
func (h *handshakes) end(conn net.Conn) {
	h.mu.Lock()
	if i := slices.Index(h.open, conn); i >= 0 {
		h.open = slices.Delete(h.open, i, i+1)
	}
	h.mu.Unlock()
}
