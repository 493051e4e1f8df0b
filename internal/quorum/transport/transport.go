package transport

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// maxPool is the number of pooled connections to a server: for replication, heartbeats
// and pushes.
const maxPool = 3

// Transport is the raft.Transport of one Raft instance. Around Raft's own network layer
// it
//   - records when a quorum last accepted this server as the leader,
//   - sends entries to followers while this server stores them,
//   - sends new commit indexes to followers immediately,
//   - withholds snapshots from Raft that would set this server back,
//   - accepts entries from any position that this server has already applied,
//   - replaces connections that make no progress, and repeats lost requests,
//   - stops the heartbeats of a leader that has a hanging disk or can't replicate, so
//     that another server can lead,
//   - starts an election as soon as the leader is known to be gone, if this server
//     should succeed it.
//
// A separate type implements each of these. Their exported methods are Transport's.
//
// Everything that Raft sends and persists names a server by its ServerID, because
// addresses change and may later belong to another server.
type Transport struct {
	*instance

	*links     // connections to and from other servers
	*receiver  // messages from other servers, checked
	*relay     // passes them to Raft
	*contacts  // followers' answers to this leader
	*paths     // followers that can't be reached
	*heartbeat // of this leader
	*pusher    // requests that a leader sends before Raft asks for them
	*replication
	*snapshots
	*candidacy
	*poll // of the other voters, before an election
	*leaderWatch

	main    *raft.NetworkTransport // for entries, pushes and snapshots that this server sends
	quick   *raft.NetworkTransport // for heartbeats and votes
	unheard atomic.Uint64
	once    sync.Once
}

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// New receives the hub's Raft streams until Close.
func New(cfg Config) *Transport {
	t := &Transport{instance: newInstance(cfg), contacts: &contacts{self: cfg.ID}, paths: new(paths)}
	i := t.instance
	t.links = newLinks(i)
	t.main, t.quick = network(t.links, i.cfg.Stall), network(t.links, i.cfg.HeartbeatStall)

	checks, abstention := &checker{instance: i}, new(abstention)
	t.relay = newRelay(i, checks, abstention)
	t.receiver = newReceiver(i, checks, t.relay)

	send := newSender(i, checks, t.contacts, t.paths)
	t.pusher = &pusher{instance: i, sender: send, net: t.main, peers: make(map[raft.ServerID]*pushPeer)}
	t.heartbeat = newHeartbeat(i, send, t.quick, t.pusher, t.links, abstention)
	t.replication = &replication{instance: i, heartbeat: t.heartbeat, paths: t.paths, pusher: t.pusher, links: t.links}
	t.snapshots = &snapshots{replication: t.replication, checker: checks, net: t.main, contacts: t.contacts}

	t.candidacy = &candidacy{instance: i, checker: checks, net: t.quick, links: t.links, abstention: abstention}
	t.poll = &poll{instance: i, abstention: abstention}
	t.leaderWatch = &leaderWatch{instance: i, poll: t.poll, relay: t.relay, abstention: abstention}

	t.links.lost, t.links.serve = t.Suspect, t.receiver.serve
	cfg.Hub.Handle(quorum.Raft, t.links.accept)
	cfg.Hub.Handle(quorum.Poll, t.poll.answer)
	t.spawn(t.relay.run)
	return t
}

// Close closes every connection of this Raft instance. The hub stays open.
func (t *Transport) Close() error {
	t.once.Do(func() {
		t.instance.end()
		_ = t.main.Close()
		_ = t.quick.Close()
		t.links.close()
		t.wg.Wait()
	})
	return nil
}

// LocalAddr returns the address of this server's quorum port.
func (t *Transport) LocalAddr() raft.ServerAddress { return raft.ServerAddress(t.cfg.Addr) }

// EncodePeer makes Raft write ServerIDs wherever it names servers.
func (t *Transport) EncodePeer(id raft.ServerID, _ raft.ServerAddress) []byte { return []byte(id) }

// DecodePeer is the inverse: it returns a ServerID in place of an address.
func (t *Transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// AppendEntriesPipeline always returns an error.
func (t *Transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries sends entries or a heartbeat, or returns the answer to entries that were
// sent early.
func (t *Transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if args.PrevLogEntry == 0 && len(args.Entries) == 0 {
		return t.heartbeat.send(id, addr, args, resp)
	}
	return t.replication.send(id, addr, args, resp)
}

// TimeoutNow makes another server start an election.
func (t *Transport) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	err := t.quick.TimeoutNow(id, target(id, addr), args, resp)
	if err != nil {
		t.unheard.Add(1)
	}
	return err
}

// Unheard returns the number of TimeoutNow requests that failed.
func (t *Transport) Unheard() uint64 { return t.unheard.Load() }
