package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// Raft sends entries to the followers after the leader has stored them on disk. We can do
// better: an entry is committed when any majority has it on disk, so the followers may
// write it at the same time as the leader. The leader therefore sends entries immediately
// when it is about to store them, as the same AppendEntries that Raft will ask for
// afterwards. Raft then gets the answer to that message.
//
// Raft counts itself when its own log has the entries, and a follower when Raft gets that
// follower's answer. Raft therefore commits nothing before a majority has it on disk. If a
// leader never stores entries that it has sent, because its disk fails or because it dies,
// it doesn't lead in this term any more, so it never sends other entries in their place.
// Another leader keeps the entries or replaces them, like any uncommitted entries.

// sent is an AppendEntries on its way to a follower, and its result.
type sent struct {
	args *raft.AppendEntriesRequest
	done chan struct{} // closed when the fields below are set
	resp raft.AppendEntriesResponse
	err  error
	took time.Duration
}

// answers reports whether the answer to s is also an answer to args.
func (s *sent) answers(args *raft.AppendEntriesRequest) bool {
	return s.args.Term == args.Term && s.args.PrevLogEntry == args.PrevLogEntry && len(s.args.Entries) == len(args.Entries)
}

// carry sends args and waits for the answer.
func (p *pusher) carry(s *sent, id raft.ServerID, addr raft.ServerAddress) {
	begin := time.Now()
	s.err = p.sender.send(p.net, id, addr, s.args, &s.resp)
	s.took = time.Since(begin)
	close(s.done)
}

// Storing sends entries that this server is about to store, and no longer changes, to the
// followers that have everything before them. It only does so on a leader: no other
// server creates entries of a term in which followers have acknowledged entries to it.
func (p *pusher) Storing(entries []*raft.Log) {
	first, last := entries[0], entries[len(entries)-1]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, peer := range p.peers {
		if peer.term != first.Term || peer.term != last.Term || peer.last != first.Index-1 || peer.asked || peer.early != nil || fitting(entries) < len(entries) {
			continue
		}
		s := &sent{done: make(chan struct{}), args: &raft.AppendEntriesRequest{RPCHeader: peer.header, Term: peer.term,
			PrevLogEntry: peer.last, PrevLogTerm: peer.lastOf, Entries: entries, LeaderCommitIndex: p.commit.Load()}}
		id, addr := peer.id, peer.addr
		if p.spawn(func() { p.carry(s, id, addr) }) {
			peer.early = s
		}
	}
}

// request carries out a request of Raft's, which may have been sent early. It returns the
// request that was finally sent.
func (p *pusher) request(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest) *sent {
	early := p.ask(id)
	defer p.asked(id)
	if early != nil {
		<-early.done // even if it is useless, because requests have to stay in order
		if early.answers(args) {
			return early
		}
	}
	s := &sent{args: args, done: make(chan struct{})}
	p.carry(s, id, addr)
	return s
}

// ask records that Raft has a request for a peer, and returns the request that we have
// sent early.
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

// asked records that Raft's request to a peer is over.
func (p *pusher) asked(id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer := p.peers[id]; peer != nil {
		peer.asked = false
	}
}
