package quorum

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// A follower learns what is committed from the next AppendEntries, which may
// not come before Raft's CommitTimeout. The pusher sends the message that Raft
// itself would send then, an empty AppendEntries, as soon as there is news.
//
// Invariants:
//   - The commit index sent never exceeds the last index the peer acknowledged
//     in this term. The follower commits up to min(LeaderCommitIndex, its last
//     index), not up to PrevLogEntry: what it holds beyond the acknowledged
//     entries may be the uncommitted rest of an older term.
//   - Nothing is sent that follows no entry: it would be taken for a heartbeat.
//   - At most one push per peer is under way; news in between is merged.
type pusher struct {
	t      *Transport
	commit atomic.Uint64 // newest committed index this leader told us of

	mu    sync.Mutex
	peers map[raft.ServerID]*pushPeer
}

type pushPeer struct {
	id      raft.ServerID
	addr    raft.ServerAddress
	header  raft.RPCHeader
	term    uint64
	last    uint64 // acknowledged in term
	lastOf  uint64 // term of that entry
	told    uint64 // commit index the peer knows for sure, in term
	pushing bool
	asked   bool  // a request of Raft's is under way
	early   *sent // what went before Raft asked for it, until it does
}

// acked notes a successful AppendEntries and tells the peer what was committed
// in the meantime. It reports whether the peer is new to this leadership.
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
func (t *Transport) Acked(term uint64, id raft.ServerID) uint64 {
	p := &t.pusher
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer := p.peers[id]; peer != nil && peer.term == term {
		return peer.last
	}
	return 0
}

// committed tells every peer of a new commit index.
func (p *pusher) committed(index uint64) {
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

// stop forgets everything: this server does not lead any more.
func (p *pusher) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commit.Store(0)
	clear(p.peers)
}

// start has what is due sent to a peer. p.mu is held.
func (p *pusher) start(peer *pushPeer) {
	if peer.pushing || p.due(peer) == 0 || p.t.closed() {
		return
	}
	peer.pushing = true
	p.t.hands.do(func() { p.push(peer) })
}

// due is the commit index that the peer should learn, 0 for none.
func (p *pusher) due(peer *pushPeer) uint64 {
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
		commit := p.due(peer)
		if commit == 0 {
			return
		}
		args := &raft.AppendEntriesRequest{RPCHeader: peer.header, Term: peer.term,
			PrevLogEntry: peer.last, PrevLogTerm: peer.lastOf, LeaderCommitIndex: commit}
		addr := peer.addr
		p.mu.Unlock()
		var resp raft.AppendEntriesResponse
		err := p.t.send(p.t.net, peer.id, addr, args, &resp)
		p.mu.Lock()
		if err != nil || !resp.Success {
			return // Raft's own message will bring it, or tell of a new term
		}
		if peer.term == args.Term {
			peer.told = max(peer.told, commit)
		}
	}
}
