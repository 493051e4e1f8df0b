package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/rpc"
)

const (
	// streamBuffer is the read buffer of a stream; longer fields bypass it.
	streamBuffer = 16 << 10
	// besideEntry is the memory that all messages being read may use, in addition to one
	// entry of the maximum size.
	besideEntry = 64 << 20
	// snapshotPrime is the number of bytes of a snapshot that are checked before Raft
	// sees it.
	snapshotPrime = 72 << 10
)

// receiver reads the messages of other servers, checks them, passes them to Raft, and
// sends Raft's answers.
//
// Invariants:
//   - Raft sees a message only after it was checked (checker), and a stream ends if it
//     delivers an invalid message, which could stop every server that gets it.
//   - Heartbeats don't wait for the relay. Otherwise a follower with a slow disk would miss
//     them and depose its leader.
//   - All messages that are being read share a bounded amount of memory (room).
type receiver struct {
	*instance
	checker     *checker
	relay       *relay
	room        room
	onHeartbeat atomic.Pointer[func(raft.RPC)]
}

func newReceiver(i *instance, checks *checker, r *relay) *receiver {
	return &receiver{instance: i, checker: checks, relay: r, room: room{limit: int64(i.cfg.MaxEntry) + besideEntry}}
}

// SetHeartbeatHandler lets heartbeats overtake RPCs that wait for the disk.
func (v *receiver) SetHeartbeatHandler(handle func(rpc raft.RPC)) {
	beat := func(rpc raft.RPC) {
		v.relay.abstention.heardLeader(time.Now())
		handle(rpc)
	}
	v.onHeartbeat.Store(&beat)
}

// serve reads and answers Raft's messages from a stream until it ends or breaks a rule.
func (v *receiver) serve(conn net.Conn, from quorum.Identity) {
	defer conn.Close()
	answered := make(chan struct{})
	defer close(answered)
	id := raft.ServerID(from.ServerID)
	hold := &holding{of: &v.room, conn: conn}
	defer hold.release()
	in := bufio.NewReaderSize(conn, streamBuffer)
	messages := rpc.NewReader(in, hold.reserve)
	var out []byte
	for {
		kind, err := in.ReadByte()
		if err != nil {
			return
		}
		command, err := messages.Decode(kind, v.cfg.MaxEntry)
		if err == nil {
			err = v.checker.examine(id, command)
		}
		if err != nil {
			if v.checker.reject(id, err) {
				_, _ = conn.Write(rpc.AppendAnswer(nil, raft.RPCResponse{Error: err}))
			}
			return
		}
		answer, ok := v.dispatch(id, in, command, answered)
		hold.release()
		if !ok {
			return
		}
		out = rpc.AppendAnswer(out[:0], answer)
		if _, err := conn.Write(out); err != nil {
			return
		}
		if _, snapshot := command.(*raft.InstallSnapshotRequest); snapshot {
			return // the stream still contains data that Raft didn't read
		}
	}
}

// dispatch passes a message to Raft and returns the answer; false if the transport was
// closed in the meantime, or if the stream broke in a snapshot. answered is closed when the
// stream has ended.
func (v *receiver) dispatch(from raft.ServerID, r io.Reader, command any, answered <-chan struct{}) (raft.RPCResponse, bool) {
	answer := make(chan raft.RPCResponse, 1)
	message := raft.RPC{Command: command, RespChan: answer}
	broken := func() bool { return false }
	if q, ok := command.(*raft.InstallSnapshotRequest); ok {
		message.Reader = io.LimitReader(r, q.Size)
		if v.cfg.CheckSnapshot != nil {
			checked := checkWhileReading(r, q.Size, func(r io.Reader) error { return v.cfg.CheckSnapshot(q, r) })
			defer func() {
				checked.close()
				if rule := (*rpc.RuleError)(nil); errors.As(checked.err, &rule) {
					v.checker.reject(from, rule)
				}
			}()
			message.Reader, broken = checked, checked.broken
			if checked.prime(snapshotPrime) != nil {
				return raft.RPCResponse{}, false // Raft would adopt the term before it reads
			}
		}
	}
	if beat := v.onHeartbeat.Load(); beat != nil && isHeartbeat(command) {
		(*beat)(message)
	} else {
		select {
		case v.relay.inbound <- incoming{message, answered}:
		case <-v.ctx.Done():
			return raft.RPCResponse{}, false
		}
	}
	select {
	case a := <-answer:
		// The leader sends the snapshot again without delay if the stream ends. We return
		// an error only if this server's Raft failed, e.g. because the disk is full.
		return a, a.Error == nil || !broken()
	case <-v.ctx.Done():
		return raft.RPCResponse{}, false
	}
}

// isHeartbeat recognizes a heartbeat by the same rule as raft.NetworkTransport.
func isHeartbeat(command any) bool {
	a, ok := command.(*raft.AppendEntriesRequest)
	return ok && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}
