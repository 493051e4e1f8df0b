package quorum

import (
	"bytes"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// Replayer is a Network that brings messages of Raft more than once, which
// streams never do and Raft has to bear. For tests.
type Replayer interface {
	Network
	// Replays says which copies of a message to this host there are. It is
	// called for every message but heartbeats, before that is delivered.
	Replays(message any) []Replay
}

// Replay is one copy of a message. Nobody hears of its answer.
type Replay struct {
	After   time.Duration // the original; negative: before it
	Message any           // nil: the original's
	// Unfiltered keeps an outdated snapshot from being noticed, for a test of
	// what would happen then.
	Unfiltered bool
}

// replays are the copies of what a server receives. They belong to its Hub: a
// message that comes late may meet another Transport than the original, as when
// a snapshot has been installed meanwhile.
type replays struct {
	hub *Hub
	net Replayer // nil: there are none
	due chan replayed
}

type replayed struct {
	rpc        raft.RPC
	unfiltered bool
}

func newReplays(h *Hub) replays {
	under := h.network
	if w, ok := under.(interface{ Unwrap() Network }); ok {
		under = w.Unwrap()
	}
	net, _ := under.(Replayer)
	return replays{hub: h, net: net, due: make(chan replayed)}
}

// arrived delivers an RPC and has its copies follow; false: the transport was
// closed meanwhile.
func (r *replays) arrived(t *Transport, rpc raft.RPC) bool {
	if r.net == nil {
		return t.pass(rpc, false)
	}
	list := r.net.Replays(rpc.Command)
	var data []byte
	if _, snapshot := rpc.Command.(*raft.InstallSnapshotRequest); snapshot && len(list) > 0 {
		data, _ = io.ReadAll(rpc.Reader) // short: it fails as the original does
		rpc.Reader = bytes.NewReader(data)
	}
	for _, c := range list {
		if c.After < 0 && !t.pass(c.rpc(rpc, data), c.Unfiltered) {
			return false
		}
	}
	for _, c := range list {
		if c.After >= 0 {
			r.later(c, c.rpc(rpc, data))
		}
	}
	return t.pass(rpc, false)
}

// later has a copy delivered in time, to whichever Transport there is then.
func (r *replays) later(c Replay, rpc raft.RPC) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if r.hub.closed {
		return // nothing is added to what Close waits for
	}
	r.hub.wg.Go(func() {
		timer := time.NewTimer(c.After)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.hub.ctx.Done():
			return
		}
		select {
		case r.due <- replayed{rpc, c.Unfiltered}:
		case <-r.hub.ctx.Done():
		}
	})
}

// rpc returns a copy that shares nothing with the original that Raft would keep.
func (c Replay) rpc(of raft.RPC, data []byte) raft.RPC {
	message := c.Message
	if message == nil {
		message = of.Command
	}
	if a, ok := message.(*raft.AppendEntriesRequest); ok {
		clone := *a
		clone.Entries = nil
		for _, e := range a.Entries {
			entry := *e
			clone.Entries = append(clone.Entries, &entry)
		}
		message = &clone
	}
	return raft.RPC{Command: message, Reader: bytes.NewReader(data), RespChan: make(chan raft.RPCResponse, 1)}
}
