// Package hostile implements a malicious peer: it sends messages that are
// malformed, absurd or false to the quorum ports of an ensemble.
//
// The servers accept a Peer that has the ensemble's id as a member: an attacker could read the id
// in a stolen backup. A Peer that lacks the id connects like any stranger on the network.
package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// Peer is a hostile process. It is not safe for concurrent use.
type Peer struct {
	hub     *quorum.Hub
	network quorum.Network
	as      string
	rnd     *rand.Rand
	id      quorum.ClusterID
}

// New returns a peer that listens on addr and identifies itself as the server as.
// The zero id makes it a stranger.
func New(network quorum.Network, addr, as string, id quorum.ClusterID, rnd *rand.Rand) (*Peer, error) {
	hub, err := quorum.Listen(network, addr, quorum.Identity{ServerID: as, Cluster: id, Nonce: rnd.Uint64() | 1}, quorum.Security{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &Peer{hub: hub, network: network, as: as, rnd: rnd, id: id}, nil
}

// Close ends the process.
func (p *Peer) Close() error { return p.hub.Close() }

// patience is how long an attack waits for a reply.
const patience = 2 * time.Second

// Attack makes one random attack on the server at addr, and returns the attack's
// name. It ends within a few seconds.
func (p *Peer) Attack(ctx context.Context, addr, server string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	kinds := []func(context.Context, string, string) string{p.raft, p.raft, p.raft, p.raft, p.forward, p.question, p.knock}
	return kinds[p.rnd.IntN(len(kinds))](ctx, addr, server)
}

// Frames returns every hostile Raft message, by name, as bytes for a stream:
// messages in the name of as that no server may accept from as.
func Frames(as string, rnd *rand.Rand) map[string][]byte {
	head := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(as), Addr: []byte(as)}
	other := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("77"), Addr: []byte("77")}
	junk := make([]byte, 1+rnd.IntN(200))
	for i := range junk {
		junk[i] = byte(rnd.Uint32())
	}
	entries := func(change func(*raft.AppendEntriesRequest)) []byte {
		a := &raft.AppendEntriesRequest{RPCHeader: head, Term: 1 << 20, PrevLogEntry: 1, PrevLogTerm: 1, LeaderCommitIndex: math.MaxUint64,
			Entries: []*raft.Log{{Index: 2, Term: 1 << 20, Data: junk}}}
		change(a)
		return frame(0, a)
	}
	snapshot := func(change func(*raft.InstallSnapshotRequest)) []byte {
		q := &raft.InstallSnapshotRequest{RPCHeader: head, SnapshotVersion: 1, Term: 1 << 20, LastLogIndex: 1 << 40, LastLogTerm: 1, ConfigurationIndex: 1,
			Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "a:1"}}}), Size: int64(len(junk))}
		change(q)
		return append(frame(2, q), junk...)
	}
	return map[string][]byte{
		"a nil entry":                 entries(func(a *raft.AppendEntriesRequest) { a.Entries = []*raft.Log{nil} }),
		"a junk entry":                entries(func(*raft.AppendEntriesRequest) {}),
		"entries with a hole":         entries(func(a *raft.AppendEntriesRequest) { a.Entries[0].Index = 9; a.Entries[0].Type = raft.LogNoop }),
		"a junk configuration":        entries(func(a *raft.AppendEntriesRequest) { a.Entries[0].Type = raft.LogConfiguration }),
		"an entry of a type of old":   entries(func(a *raft.AppendEntriesRequest) { a.Entries[0].Type = raft.LogAddPeerDeprecated }),
		"an entry of an unknown type": entries(func(a *raft.AppendEntriesRequest) { a.Entries[0].Type = 200 }),
		"an entry of a term to come":  entries(func(a *raft.AppendEntriesRequest) { a.Entries[0].Term = 1 << 30; a.Entries[0].Type = raft.LogNoop }),
		"entries of another leader":   entries(func(a *raft.AppendEntriesRequest) { a.RPCHeader = other; a.Entries = nil }),
		"entries for another leader":  entries(func(a *raft.AppendEntriesRequest) { a.Leader = []byte("77"); a.Entries = nil }),
		"a heartbeat of the last term": entries(func(a *raft.AppendEntriesRequest) {
			*a = raft.AppendEntriesRequest{RPCHeader: head, Term: math.MaxUint64}
		}),
		"a heartbeat of another leader":   entries(func(a *raft.AppendEntriesRequest) { *a = raft.AppendEntriesRequest{RPCHeader: other, Term: 1 << 20} }),
		"a vote in the last term":         frame(1, &raft.RequestVoteRequest{RPCHeader: head, Term: math.MaxUint64, LastLogIndex: 1 << 40, LastLogTerm: 1 << 40}),
		"a vote for another":              frame(1, &raft.RequestVoteRequest{RPCHeader: head, Term: 1 << 20, Candidate: []byte("77"), LastLogIndex: 1 << 40, LastLogTerm: 1 << 10}),
		"a vote for a log that cannot be": frame(1, &raft.RequestVoteRequest{RPCHeader: head, Term: 9, LastLogIndex: math.MaxUint64, LastLogTerm: math.MaxUint64, LeadershipTransfer: true}),
		"a pre-vote in the last term":     frame(4, &raft.RequestPreVoteRequest{RPCHeader: head, Term: math.MaxUint64, LastLogIndex: 1 << 40, LastLogTerm: 1 << 40}),
		"a vote without a version":        frame(1, &raft.RequestVoteRequest{Term: 1 << 20}),
		"a junk snapshot":                 snapshot(func(*raft.InstallSnapshotRequest) {}),
		"a snapshot of negative size":     snapshot(func(q *raft.InstallSnapshotRequest) { q.Size = -1 }),
		"a snapshot that never comes":     snapshot(func(q *raft.InstallSnapshotRequest) { q.Size = math.MaxInt64 }),
		"a snapshot for nobody":           snapshot(func(q *raft.InstallSnapshotRequest) { q.Configuration = junk }),
		"a snapshot of version 0":         snapshot(func(q *raft.InstallSnapshotRequest) { q.SnapshotVersion = 0 }),
		"TimeoutNow for another":          frame(3, &raft.TimeoutNowRequest{RPCHeader: other}),
		"an id of 4 GB":                   append([]byte{1}, "\x81\xa2ID\xc6\xff\xff\xff\xff"...),
		"an entry of 4 GB":                append([]byte{0}, "\x81\xa7Entries\x91\x81\xa4Data\xc6\xff\xff\xff\xff"...),
		"four billion entries":            append([]byte{0}, "\x81\xa7Entries\xdd\xff\xff\xff\xff"...),
		"an unknown message":              append([]byte{byte(5 + rnd.IntN(250))}, junk...),
		"junk":                            append([]byte{byte(rnd.IntN(5))}, junk...),
	}
}

// frame encodes a Raft message after its type.
func frame(kind byte, message any) []byte {
	b := bytes.NewBuffer([]byte{kind})
	var handle codec.MsgpackHandle
	handle.TimeNotBuiltin = true
	if err := codec.NewEncoder(b, &handle).Encode(message); err != nil {
		panic(err) // a message of this package
	}
	return b.Bytes()
}

// raft sends one hostile Raft message.
func (p *Peer) raft(ctx context.Context, addr, server string) string {
	frames := Frames(p.as, p.rnd)
	names := make([]string, 0, len(frames))
	for name := range frames {
		names = append(names, name)
	}
	name := names[p.rnd.IntN(len(names))]
	p.Send(ctx, quorum.Raft, addr, server, frames[name])
	return name
}

// Send opens a stream, sends b and reads until the other side or the context ends
// the stream. It returns the bytes that it read.
func (p *Peer) Send(ctx context.Context, kind quorum.Kind, addr, server string, b []byte) []byte {
	conn, _, err := p.hub.Dial(ctx, kind, addr, server)
	if err != nil {
		return nil
	}
	return exchange(ctx, conn, b)
}

func exchange(ctx context.Context, conn net.Conn, b []byte) []byte {
	defer conn.Close()
	if by, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(by)
	}
	_, _ = conn.Write(b)
	answer, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
	return answer
}

// forward sends random bytes as batches of commands and reports of sessions.
func (p *Peer) forward(ctx context.Context, addr, server string) string {
	kind := []quorum.Kind{quorum.Forward, quorum.Liveness}[p.rnd.IntN(2)]
	b := binary.BigEndian.AppendUint64(nil, p.rnd.Uint64())
	b = binary.BigEndian.AppendUint32(b, p.rnd.Uint32())
	for range p.rnd.IntN(100) {
		b = append(b, byte(p.rnd.Uint32()))
	}
	p.Send(ctx, kind, addr, server, b)
	return fmt.Sprint(kind, " without sense")
}

// question sends requests that only a member, or a leader, may send.
func (p *Peer) question(ctx context.Context, addr, server string) string {
	super := map[string]any{"ids": []map[string]string{{"Scheme": "super", "ID": ""}},
		"body": binary.BigEndian.AppendUint64([]byte("\xff\xff\xff\xff\x00\x00\x00\x011\xff\xff\xff\xff"), math.MaxUint64)}
	questions := map[string]any{
		"a reconfig as super":         map[string]any{"reconfig": super},
		"the place of a member":       map[string]any{"probe": map[string]any{"id": p.rnd.IntN(4), "disk": 9, "addr": "x:1", "phase": "empty", "join": true, "as": fmt.Sprintf("%d.9", p.rnd.IntN(4)), "level": 99, "token": 5}},
		"a formation plan of its own": map[string]any{"probe": map[string]any{"id": p.rnd.IntN(4), "phase": "bound", "promised": map[string]any{"round": uint64(math.MaxUint64), "server": 1, "disk": 1}}},
		"an admission to nowhere":     map[string]any{"admit": map[string]any{"cluster": "00000000000000000000000000000001", "serverID": server, "token": p.rnd.Uint64()}},
		"a question of another kind":  map[string]any{"probe": 5},
	}
	names := make([]string, 0, len(questions))
	for name := range questions {
		names = append(names, name)
	}
	name := names[p.rnd.IntN(len(names))]
	data, err := json.Marshal(questions[name])
	if err != nil {
		panic(err) // a message of this package
	}
	kind := []quorum.Kind{quorum.Probe, quorum.Change, quorum.Poll}[p.rnd.IntN(3)]
	p.Send(ctx, kind, addr, server, append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return name
}

// knock sends an invalid handshake, or the beginning of one.
func (p *Peer) knock(ctx context.Context, addr, _ string) string {
	conn, err := p.network.Dial(ctx, addr)
	if err != nil {
		return "nothing"
	}
	b := []byte("zkgopeer\x00\x01\x01\x00")
	for range p.rnd.IntN(300) {
		b = append(b, byte(p.rnd.Uint32()))
	}
	exchange(ctx, conn, b[:p.rnd.IntN(len(b)+1)])
	return "no handshake"
}
