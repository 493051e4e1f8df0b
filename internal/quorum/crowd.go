package quorum

import "slices"

const (
	// maxStreams bounds the streams of one kind that one member holds open here. A member
	// needs a handful of each; any more are left over from dead connections.
	maxStreams = 32
	// maxStrangers bounds the streams of one kind of all callers that haven't proved that
	// they are members.
	maxStrangers = 64
)

// crowd identifies the streams of one kind that a member, or all strangers together, hold
// open.
type crowd struct {
	kind     Kind
	serverID string // empty: strangers
}

// enter counts an accepted stream. If there are too many, enter closes the stream that has
// been silent for longest: if a caller opens streams without using them, it loses them to
// callers that use theirs.
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

// leave takes a stream out of its crowd. h.mu is held.
func (h *Hub) leave(conn *tracked) {
	all := h.crowds[conn.crowd]
	if i := slices.Index(all, conn); i >= 0 {
		all = slices.Delete(all, i, i+1)
	}
	if h.crowds[conn.crowd] = all; len(all) == 0 {
		delete(h.crowds, conn.crowd)
	}
}
