package kubernetes

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// resolver is a name server that knows the pods.
type resolver struct {
	mu    sync.Mutex
	names map[string]netip.Addr
}

// set gives a name an address.
func (r *resolver) set(name string, addr netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[name] = addr
}

// remove removes a name's address.
func (r *resolver) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

func (r *resolver) find(name string) (netip.Addr, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	addr, ok := r.names[strings.ToLower(strings.TrimSuffix(name, "."))]
	return addr, ok
}

// serve answers questions until the socket is closed.
func (r *resolver) serve(conn net.PacketConn) {
	b := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		if reply := r.reply(b[:n]); reply != nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

// reply answers a query with one question: an address, no address, or no such name.
func (r *resolver) reply(q []byte) []byte {
	const header = 12
	if len(q) < header {
		return nil
	}
	var labels []string
	i := header
	for i < len(q) && q[i] != 0 {
		end := i + 1 + int(q[i])
		if end >= len(q) {
			return nil
		}
		labels = append(labels, string(q[i+1:end]))
		i = end
	}
	if i+5 > len(q) {
		return nil
	}
	kind, end := binary.BigEndian.Uint16(q[i+1:]), i+5
	out := append([]byte(nil), q[:end]...)
	copy(out[2:], []byte{0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an authoritative answer to one question
	addr, known := r.find(strings.Join(labels, "."))
	switch {
	case !known:
		out[3] |= 3 // no such name
	case kind == 1: // A
		out[7] = 1
		out = append(out, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4)
		out = append(out, addr.AsSlice()...)
	}
	return out
}
