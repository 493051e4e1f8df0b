package transport

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// Replayer is a Network that delivers Raft's messages more than once. Streams never do
// that, but Raft should tolerate it. It is for tests.
type Replayer interface {
	quorum.Network
	// Replays returns the copies of a message to this host. It is called before the
	// message is delivered, for every message except heartbeats.
	Replays(message any) []Replay
}

// Replay is one copy of a message. Its answer is dropped.
type Replay struct {
	After   time.Duration // time after the original; negative: before it
	Message any           // nil: the original message
	// Unfiltered disables the check for outdated snapshots, so that a test can show why
	// the check is necessary.
	Unfiltered bool
}

// Replays delivers the copies of messages to a server. It lives as long as the Hub: a late
// copy may reach another Transport than the original, e.g. after a snapshot has been
// installed.
type Replays struct {
	hub *quorum.Hub
	net Replayer
	due chan replayed
}

type replayed struct {
	rpc        raft.RPC
	unfiltered bool
}

// NewReplays returns the Replays for a hub, or nil if the hub's network isn't a Replayer.
func NewReplays(hub *quorum.Hub, network quorum.Network) *Replays {
	if w, ok := network.(interface{ Unwrap() quorum.Network }); ok {
		network = w.Unwrap()
	}
	if net, ok := network.(Replayer); ok {
		return &Replays{hub: hub, net: net, due: make(chan replayed)}
	}
	return nil
}

// late returns the channel of the copies that are due; nil if there are none.
func (r *Replays) late() <-chan replayed {
	if r == nil {
		return nil
	}
	return r.due
}

// arrived delivers an RPC and schedules its copies. It returns false if the transport was
// closed in the meantime.
func (r *Replays) arrived(to *relay, in incoming) bool {
	if r == nil {
		return to.pass(in, false)
	}
	rpc := in.RPC
	list := r.net.Replays(rpc.Command)
	var data []byte
	if _, snapshot := rpc.Command.(*raft.InstallSnapshotRequest); snapshot && len(list) > 0 {
		data, _ = io.ReadAll(rpc.Reader) // if it is short, it fails like the original
		rpc.Reader = bytes.NewReader(data)
	}
	for _, c := range list {
		if c.After < 0 && !to.pass(incoming{RPC: c.rpc(rpc, data)}, c.Unfiltered) {
			return false
		}
	}
	for _, c := range list {
		if c.After >= 0 {
			r.later(c, c.rpc(rpc, data))
		}
	}
	return to.pass(incoming{rpc, in.answered}, false)
}

// later schedules the delivery of a copy, to the Transport that exists by then.
func (r *Replays) later(c Replay, rpc raft.RPC) {
	r.hub.Go(func(ctx context.Context) {
		timer := time.NewTimer(c.After)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		select {
		case r.due <- replayed{rpc, c.Unfiltered}:
		case <-ctx.Done():
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
