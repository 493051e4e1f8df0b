package transport

import (
	"fmt"
	"net"
	"sync"

	"github.com/zkgo/zkgo/internal/quorum/rpc"
)

// room limits the memory of all messages that are being read. If it is exhausted, the
// stream that uses the most is closed.
type room struct {
	mu    sync.Mutex
	limit int64
	used  int64
	holds map[*holding]struct{}
}

// holding is one stream's share of a room.
type holding struct {
	of     *room
	conn   net.Conn
	bytes  int64
	closed bool
}

var errNoRoom = fmt.Errorf("%w: it is the largest of the messages being read, and their memory is exhausted", rpc.ErrTooLong)

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

// drop releases h's memory. The caller must hold the room's lock.
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
