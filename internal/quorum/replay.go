package quorum

import (
	"bytes"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// Replayer is a Network that delivers Raft's messages more than once. Streams never do
// that, but Raft should tolerate it. It is for tests.
type Replayer interface {
	Network
	// Replays returns the copies of a message to this host. It is called before the
	// message is delivered, for every message except heartbeats.
	Replays(message any) []Replay
}

// Replay is one copy of a message. Its answer is dropped.
type Replay struct {
	After   time.Duration // time after the original; negative: before it
	Message any           // nil: the original message
	// Unfiltered disables the check for outdated snapshots, so that a test can show what
	// would happen without it.
	Unfiltered bool
}

// replays delivers the copies of messages to a server. It belongs to the Hub: a late copy
// may reach another Transport than the original, e.g. after a snapshot has been
// installed.
type replays struct {
	hub *Hub
	net Replayer // nil: no copies
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

// arrived delivers an RPC and schedules its copies. It returns false if the transport was
// closed in the meantime.
func (r *replays) arrived(t *Transport, in incoming) bool {
	if r.net == nil {
		return t.pass(in, false)
	}
	rpc := in.RPC
	list := r.net.Replays(rpc.Command)
	var data []byte
	if _, snapshot := rpc.Command.(*raft.InstallSnapshotRequest); snapshot && len(list) > 0 {
		data, _ = io.ReadAll(rpc.Reader) // if it is short it fails as the original does
		rpc.Reader = bytes.NewReader(data)
	}
	for _, c := range list {
		if c.After < 0 && !t.pass(incoming{RPC: c.rpc(rpc, data)}, c.Unfiltered) {
			return false
		}
	}
	for _, c := range list {
		if c.After >= 0 {
			r.later(c, c.rpc(rpc, data))
		}
	}
	return t.pass(incoming{rpc, in.answered}, false)
}

// later schedules the delivery of a copy, to the Transport that exists by then.
func (r *replays) later(c Replay, rpc raft.RPC) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if r.hub.closed {
		return // add nothing to what Close waits for
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

// rpc returns a copy that shares no data with the original that Raft would keep.
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
