package quorum

import "slices"

const (
	// maxStreams bounds the streams of one kind that one member holds open here. It
	// needs a handful of each; more are left over from connections that died.
	maxStreams = 32
	// maxStrangers bounds those of one kind of all callers that have not proved to
	// be members.
	maxStrangers = 64
)

// crowd is the streams of one kind that a member holds open, or all strangers.
type crowd struct {
	kind     Kind
	serverID string // empty: strangers
}

// enter counts an accepted stream. When there are too many, the one is closed over
// which nothing has come for longest: a caller that opens streams for nothing loses them
// to those who use theirs.
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
