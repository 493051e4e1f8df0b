package quorum

import "slices"

const (
	// maxStreams limits the open streams of one kind from one member. A member needs a
	// handful of each; any more are left over from dead connections.
	maxStreams = 32
	// maxStrangers limits the open streams of one kind from all callers that haven't
	// proved their membership.
	maxStrangers = 64
)

// crowd identifies the open streams of one kind from one member, or from all strangers
// together.
type crowd struct {
	kind     Kind
	serverID string // empty for strangers
}

// enter counts an accepted stream. If there are too many, enter closes the stream that
// has been idle the longest, so a caller that doesn't use its streams loses them to
// callers that do.
func (h *Hub) enter(conn *tracked, kind Kind, from Identity) {
	key, limit := crowd{kind, from.ServerID}, maxStreams
	if from.Cluster == (ClusterID{}) {
		key.serverID, limit = "", maxStrangers
	}
	h.mu.Lock()
	conn.crowd = key
	h.crowds[key] = append(h.crowds[key], conn)
	var idle *tracked
	if all := h.crowds[key]; len(all) > limit {
		idle = slices.MinFunc(all[:len(all)-1], func(a, b *tracked) int { return int(a.heard.Load() - b.heard.Load()) })
		h.leave(idle)
	}
	h.mu.Unlock()
	if idle != nil {
		_ = idle.Close()
	}
}

// leave removes a stream from its crowd. The caller must hold h.mu.
func (h *Hub) leave(conn *tracked) {
	all := h.crowds[conn.crowd]
	if i := slices.Index(all, conn); i >= 0 {
		all = slices.Delete(all, i, i+1)
	}
	if h.crowds[conn.crowd] = all; len(all) == 0 {
		delete(h.crowds, conn.crowd)
	}
}
