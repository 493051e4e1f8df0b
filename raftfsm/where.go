package raftfsm

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// Where the servers are. Raft's configuration has one address for each server, which
// the others dial. It comes from, in this order,
//
//   - the server's line in the membership, if a client's reconfig has set it,
//   - what the server says about itself, from its own configuration file,
//   - the lists of the other servers, if the server itself is configured with a wildcard,
//     e.g. 0.0.0.0: that says where to listen, not where the server is.
//
// A wildcard never gets into Raft's configuration. A server without any known address
// has the placeholder there, which can't be dialled. The others find it by their own
// files (see addresses).

// listedAt returns the address of a server in the files of other servers, or "" if none
// of the files heard recently has one.
func (e *ensemble) listedAt(server uint64) string {
	e.joins.mu.Lock()
	defer e.joins.mu.Unlock()
	var found []string
	for of, a := range e.joins.files {
		if m := a.list.Member(server); of != server && m != nil && membership.Dialable(m.QuorumAddr) {
			found = append(found, m.QuorumAddr)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found) // all leaders choose the same one
}

// knownAt returns an address of a server for a list that has only a wildcard for it, or
// "" if none is known.
func (e *ensemble) knownAt(server uint64, now *membership.List) string {
	if now != nil {
		if m := now.Member(server); m != nil && membership.Dialable(m.QuorumAddr) {
			return m.QuorumAddr
		}
	}
	for _, s := range e.env.raftNow().GetConfiguration().Configuration().Servers {
		if membership.ServerOf(s.ID) == server && membership.Dialable(string(s.Address)) {
			return string(s.Address)
		}
	}
	return e.listedAt(server)
}

// joinAddr returns the address at which to dial a joining server: the one where it was
// reached, until it listens at the one in the membership.
func (e *ensemble) joinAddr(m *membership.Member, j joiner) string {
	if j.reached != "" {
		return j.reached
	}
	e.joins.mu.Lock()
	from := e.joins.calledFrom(j.id)
	e.joins.mu.Unlock()
	return membership.FirstDialable(m.ID, m.QuorumAddr, j.addr, e.listedAt(m.ID), from)
}

// whereIs returns the address that Raft's configuration should have for a server, or ""
// to keep the current one.
func (e *ensemble) whereIs(s raft.Server) string {
	id := membership.ServerOf(s.ID)
	var line membership.Member
	if m := e.replicated(); m != nil && m.Member(id) != nil {
		line = *m.Member(id)
	}
	own := e.self.QuorumAddr
	if s.ID != e.env.identity.RaftID {
		e.joins.mu.Lock()
		own = e.joins.seen[s.ID]
		e.joins.mu.Unlock()
	}
	switch {
	case line.ByReconfig() && membership.Dialable(line.QuorumAddr):
		return line.QuorumAddr
	case membership.Dialable(own):
		return own
	case membership.Dialable(string(s.Address)):
		return ""
	}
	for _, m := range e.env.cfg.Members {
		if m.ID == id && membership.Dialable(m.QuorumAddr) {
			return m.QuorumAddr
		}
	}
	return e.listedAt(id)
}

// stepAddress follows a server that moved, after the server has proved that it is at
// the new address.
func (e *ensemble) stepAddress(s *step, l *leading, server raft.Server) {
	r, addr := e.env.raftNow(), e.whereIs(server)
	if addr == "" && !membership.Dialable(string(server.Address)) {
		e.askFiles(l) // another server may know
		addr = e.whereIs(server)
	}
	if addr == "" || addr == string(server.Address) || !e.isAt(server, addr) {
		return
	}
	s.what = fmt.Sprintf("move server %s from %s to %s", server.ID, server.Address, addr)
	s.change = func() error {
		if server.Suffrage == raft.Voter {
			return r.AddVoter(server.ID, raft.ServerAddress(addr), 0, changeTimeout).Error()
		}
		return r.AddNonvoter(server.ID, raft.ServerAddress(addr), 0, changeTimeout).Error()
	}
}

// isAt reports whether a server answers at an address. After a failure, it doesn't ask
// the server again for a while.
func (e *ensemble) isAt(server raft.Server, addr string) bool {
	if server.ID == e.env.identity.RaftID {
		return !e.moving(addr)
	}
	key := string(server.ID) + "@" + addr
	if e.asking == key && time.Since(e.askedAt) < askAgain {
		return false
	}
	ctx, cancel := context.WithTimeout(e.ctx, probeTimeout)
	defer cancel()
	p, theirs, err := e.formation.Probe(ctx, addr, string(server.ID))
	if err != nil || theirs.ServerID != string(server.ID) {
		e.asking, e.askedAt = key, time.Now()
		return false
	}
	e.joins.noteList(p)
	return true
}

const (
	// askAgain is the pause before the next check whether a moved server is at its new
	// address.
	askAgain = time.Second
	// listenAgain is the pause before this server tries again to listen at the address
	// that a reconfig has set for it.
	listenAgain = 5 * time.Second
)

// noteAddress remembers the address that another server announces, and the address it
// calls from.
func (e *ensemble) noteAddress(p *bootstrap.Probe, from quorum.Identity, remote net.Addr) {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		host = remote.String() // of a network without ports
	}
	_, port, err := net.SplitHostPort(p.Addr)
	if err == nil && !membership.Dialable(p.Addr) && membership.ServerOf(p.As) == p.ID {
		e.joins.noteFrom(p.As, net.JoinHostPort(host, port)) // the handshake tells whether the server is there
	}
	if string(p.As) != from.ServerID {
		return
	}
	if from.Cluster != e.hub.Identity().Cluster || from.Cluster == (quorum.ClusterID{}) {
		return
	}
	e.joins.noteList(p)
	if !membership.Dialable(p.Addr) {
		return
	}
	e.joins.mu.Lock()
	defer e.joins.mu.Unlock()
	if e.joins.seen == nil {
		e.joins.seen = make(map[raft.ServerID]string)
	}
	e.joins.seen[p.As] = p.Addr
}

// MaxCallers bounds the ServerIDs of one server id whose calling addresses are
// remembered.
const MaxCallers = 16

// caller is a ServerID and the address from which it has called.
type caller struct {
	id   raft.ServerID
	addr string
}

// noteFrom remembers the address from which a server with a wildcard address has called.
// A caller may claim any ServerID, so if there are too many, only one of the same server
// id is forgotten: the one that has been silent for longest.
func (j *joins) noteFrom(id raft.ServerID, addr string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.from == nil {
		j.from = make(map[uint64][]caller)
	}
	server := membership.ServerOf(id)
	all := slices.DeleteFunc(j.from[server], func(c caller) bool { return c.id == id })
	if len(all) >= MaxCallers {
		all = slices.Delete(all, 0, 1)
	}
	j.from[server] = append(all, caller{id, addr})
}

// calledFrom returns the address from which a server with a wildcard address has called,
// or "". The caller holds j.mu.
func (j *joins) calledFrom(id raft.ServerID) string {
	all := j.from[membership.ServerOf(id)]
	if i := slices.IndexFunc(all, func(c caller) bool { return c.id == id }); i >= 0 {
		return all[i].addr
	}
	return ""
}

// addresses returns the addresses that a server may have besides the one in Raft's
// configuration: from the membership, from its own announcement, from this server's
// configuration file, and the address it has called from.
func (e *ensemble) addresses(id raft.ServerID) []string {
	var out []string
	add := func(addr string) {
		if addr != "" && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	if m := e.replicated(); m != nil {
		if x := m.Member(membership.ServerOf(id)); x != nil && membership.Dialable(x.QuorumAddr) {
			add(x.QuorumAddr)
		}
	}
	e.joins.mu.Lock()
	add(e.joins.seen[id])
	from := e.joins.calledFrom(id)
	e.joins.mu.Unlock()
	for _, m := range e.env.cfg.Members {
		if m.ID == membership.ServerOf(id) {
			add(m.QuorumAddr)
		}
	}
	add(from)
	return out
}

// moving reports whether this server can't listen yet at an address that a reconfig has
// set for it.
func (e *ensemble) moving(addr string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listenErr != nil && e.listenWant[0] == addr
}

// followOwnAddress makes this server listen at the addresses that a reconfig has set for
// it, before it closes the old ones. Reconcile loop.
func (e *ensemble) followOwnAddress(m *membership.List) {
	line := m.Member(e.self.ID)
	if line == nil || !line.ByReconfig() || !membership.Dialable(line.QuorumAddr) {
		return
	}
	asked := line.QuorumAddrs()
	news := !slices.Equal(asked, e.listenWant)
	if !news && (e.listenErr == nil || time.Since(e.listenTried) < listenAgain) {
		return
	}
	want := e.listenAddrs(line)
	var err error
	if !slices.Equal(want, e.listening) {
		var now []string
		now, err = e.hub.Relisten(want...)
		if !slices.Equal(now, e.listening) && now != nil {
			e.log.Info("listens for the other servers at another address", "from", strings.Join(e.listening, "|"), "to", strings.Join(now, "|"))
			e.listening = now
		}
	}
	if err != nil && slices.Equal(portsOf(want), portsOf(e.listening)) {
		// Other names for the same addresses, or some that only the others can use.
		e.log.Debug("cannot listen at the addresses of the membership and goes on at the same ports", "want", want, "listening", e.listening, "err", err)
		err = nil
	}
	if err != nil && news {
		e.log.Error("cannot listen for the other servers at the address that a reconfig has set: it goes on at the old one and tries again; "+
			"free the port, or set another one with reconfig", "addr", strings.Join(want, "|"), "listening", strings.Join(e.listening, "|"), "err", err)
	}
	e.listenTried = time.Now()
	e.mu.Lock()
	e.listenWant, e.listenErr = asked, err
	e.mu.Unlock()
}

// portsOf returns the different ports of addresses, sorted.
func portsOf(addrs []string) []string {
	ports := make([]string, len(addrs))
	for i, addr := range addrs {
		_, ports[i], _ = net.SplitHostPort(addr)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// ownAddr returns the address at which the others dial this server.
func (e *ensemble) ownAddr() string {
	if r := e.env.raftNow(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.ID == e.env.identity.RaftID && membership.Dialable(string(s.Address)) {
				return string(s.Address)
			}
		}
	}
	return e.self.QuorumAddr
}
