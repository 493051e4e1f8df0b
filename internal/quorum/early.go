package quorum

import (
	"time"

	"github.com/hashicorp/raft"
)

// Raft sends entries to the followers when its leader has them on disk. That is
// later than need be: an entry is committed when a majority has it there, whoever
// belongs to that, so the followers may write while the leader does. What the
// leader is about to store goes to them at once, as the very AppendEntries that
// Raft will ask for afterwards; Raft gets its answer then.
//
// Raft counts itself when its own log has the entries, and a follower when it is
// given the answer, so it commits nothing sooner than a majority has it on disk. A
// leader that never stores what it has sent, because its disk refuses or because it
// dies, leads no more in this term, and so never sends anything else in its place;
// another leader keeps the entries or replaces them, as any that were not
// committed.

// sent is an AppendEntries on its way to a follower, and what came of it.
type sent struct {
	args *raft.AppendEntriesRequest
	done chan struct{} // closed when the rest is known
	resp raft.AppendEntriesResponse
	err  error
	took time.Duration
}

// answers says whether the answer to s is one to args.
func (s *sent) answers(args *raft.AppendEntriesRequest) bool {
	return s.args.Term == args.Term && s.args.PrevLogEntry == args.PrevLogEntry && len(s.args.Entries) == len(args.Entries)
}

// carry sends args and waits for the answer.
func (t *Transport) carry(s *sent, id raft.ServerID, addr raft.ServerAddress) {
	begin := time.Now()
	s.err = t.send(t.net, id, addr, s.args, &s.resp)
	s.took = time.Since(begin)
	close(s.done)
}

// Storing sends what this server is about to store, and changes no more, to the
// followers that have everything before it. It does so only on a leader: nobody else makes entries of
// the term in which followers have acknowledged some to it.
func (t *Transport) Storing(entries []*raft.Log) {
	first, last := entries[0], entries[len(entries)-1]
	p := &t.pusher
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, peer := range p.peers {
		if peer.term != first.Term || peer.term != last.Term || peer.last != first.Index-1 || peer.asked || peer.early != nil || t.closed() || fitting(entries) < len(entries) {
			continue
		}
		s := &sent{done: make(chan struct{}), args: &raft.AppendEntriesRequest{RPCHeader: peer.header, Term: peer.term,
			PrevLogEntry: peer.last, PrevLogTerm: peer.lastOf, Entries: entries, LeaderCommitIndex: p.commit.Load()}}
		peer.early = s
		id, addr := peer.id, peer.addr
		t.hands.do(func() { t.carry(s, id, addr) })
	}
}

// request does what Raft asks for, which may have been done early. It returns what
// was sent in the end.
func (t *Transport) request(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest) *sent {
	early := t.pusher.ask(id)
	defer t.pusher.asked(id)
	if early != nil {
		<-early.done // also if it is of no use: requests come in their order
		if early.answers(args) {
			return early
		}
	}
	s := &sent{args: args, done: make(chan struct{})}
	t.carry(s, id, addr)
	return s
}

// ask notes that Raft has a request to a peer, and returns what was sent before.
func (p *pusher) ask(id raft.ServerID) *sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	peer := p.peers[id]
	if peer == nil {
		return nil
	}
	s := peer.early
	peer.asked, peer.early = true, nil
	return s
}

// asked notes that Raft's request to a peer is over.
func (p *pusher) asked(id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer := p.peers[id]; peer != nil {
		peer.asked = false
	}
}
