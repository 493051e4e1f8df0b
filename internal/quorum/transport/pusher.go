package transport

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// pusher sends a new commit index to the followers immediately. Otherwise they would
// learn it from the next AppendEntries, which Raft may not send before its CommitTimeout.
// A push is the message that Raft itself would send then, an empty AppendEntries.
//
// Invariants:
//   - The commit index sent never exceeds the last index that the peer acknowledged in this
//     term. The follower commits up to min(LeaderCommitIndex, its last index), not up to
//     PrevLogEntry: entries in its log after the acknowledged ones may be uncommitted
//     leftovers of an older term.
//   - We push only after an entry: otherwise the follower would mistake the push for a
//     heartbeat.
//   - At most one push per peer is in flight. We merge newer commit indexes.
type pusher struct {
	*instance
	sender *sender
	net    *raft.NetworkTransport
	commit atomic.Uint64 // newest commit index reported by this leader

	mu    sync.Mutex
	peers map[raft.ServerID]*pushPeer
}

type pushPeer struct {
	id      raft.ServerID
	addr    raft.ServerAddress
	header  raft.RPCHeader
	term    uint64
	last    uint64 // last index that the peer acknowledged in term
	lastOf  uint64 // term of that entry
	told    uint64 // commit index that the peer is known to have, in term
	pushing bool
	asked   bool  // a request of Raft's is in flight
	early   *sent // an entry batch sent before Raft asked for it, until Raft does
}

// acked records a successful AppendEntries and sends the commit index to the peer if it has
// advanced. It reports whether the peer is new to this leadership.
func (p *pusher) acked(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest) (joined bool) {
	last, lastOf := args.PrevLogEntry, args.PrevLogTerm
	if n := len(args.Entries); n > 0 {
		last, lastOf = args.Entries[n-1].Index, args.Entries[n-1].Term
	}
	if last == 0 {
		return false // a heartbeat
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	peer := p.peers[id]
	if peer == nil {
		peer, joined = &pushPeer{id: id}, true
		p.peers[id] = peer
	}
	if args.Term < peer.term {
		return false
	}
	if args.Term > peer.term {
		peer.term, peer.last, peer.told = args.Term, 0, 0
	}
	peer.addr, peer.header = addr, args.RPCHeader
	if last >= peer.last {
		peer.last, peer.lastOf = last, lastOf
	}
	peer.told = max(peer.told, min(args.LeaderCommitIndex, last))
	p.start(peer)
	return joined
}

// Acked returns the newest index that a peer has acknowledged in this term.
func (p *pusher) Acked(term uint64, id raft.ServerID) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer := p.peers[id]; peer != nil && peer.term == term {
		return peer.last
	}
	return 0
}

// Committed tells the followers that all entries up to index are committed. Only the
// leader may call it, with an index of the log that it leads.
func (p *pusher) Committed(index uint64) {
	for {
		old := p.commit.Load()
		if index <= old {
			return
		}
		if p.commit.CompareAndSwap(old, index) {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, peer := range p.peers {
		p.start(peer)
	}
}

// Deposed ends this server's duties as a leader: it forgets all peers.
func (p *pusher) Deposed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commit.Store(0)
	clear(p.peers)
}

// start pushes the commit index to a peer if a push is due. The caller must hold p.mu.
func (p *pusher) start(peer *pushPeer) {
	if !peer.pushing && p.unsentCommit(peer) > 0 {
		peer.pushing = p.spawn(func() { p.push(peer) })
	}
}

// unsentCommit returns the commit index that the peer should learn, 0 for none.
func (p *pusher) unsentCommit(peer *pushPeer) uint64 {
	if c := min(p.commit.Load(), peer.last); c > peer.told {
		return c
	}
	return 0
}

func (p *pusher) push(peer *pushPeer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { peer.pushing = false }()
	for p.peers[peer.id] == peer {
		commit := p.unsentCommit(peer)
		if commit == 0 {
			return
		}
		args := &raft.AppendEntriesRequest{RPCHeader: peer.header, Term: peer.term,
			PrevLogEntry: peer.last, PrevLogTerm: peer.lastOf, LeaderCommitIndex: commit}
		addr := peer.addr
		p.mu.Unlock()
		var resp raft.AppendEntriesResponse
		err := p.sender.send(p.net, peer.id, addr, args, &resp)
		p.mu.Lock()
		if err != nil || !resp.Success {
			return // Raft's own message will deliver it, or report a new term
		}
		if peer.term == args.Term {
			peer.told = max(peer.told, commit)
		}
	}
}
