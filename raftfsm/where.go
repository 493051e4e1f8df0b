package raftfsm

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// Where the servers are. Raft's configuration has one address of each, by which the
// others dial it. It comes from, in this order,
//
//   - the server's line in the membership, if a client's reconfig has named that,
//   - what the server says of itself, as its own configuration file has it,
//   - the lists of the other servers, when the server itself is configured with a
//     wildcard, such as 0.0.0.0: that says where to listen and not where it is.
//
// A wildcard never gets into Raft's configuration. A server of which no other address
// is known has the placeholder there, which leads nowhere; the others find it by
// their own files (addresses).

// dialable reports whether addr is a host and port that other servers can dial.
func dialable(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && !wildcard(host)
}

// placeholder stands in Raft's configuration for an address that is not known.
func placeholder(server uint64) string { return fmt.Sprint("server.", server) }

// firstDialable returns the first address that can be dialled, or the placeholder.
func firstDialable(server uint64, addrs ...string) string {
	if i := slices.IndexFunc(addrs, dialable); i >= 0 {
		return addrs[i]
	}
	return placeholder(server)
}

// located returns the line with the host of addr, where a wildcard stands in it.
func (m Member) located(addr string) Member {
	if dialable(m.QuorumAddr) || !dialable(addr) || len(m.Alternates) > 0 {
		return m
	}
	host, _, _ := net.SplitHostPort(addr)
	m.ConfigNodeTxt = "" // of the old host
	for _, a := range []*string{&m.QuorumAddr, &m.ElectionAddr} {
		if _, port, err := net.SplitHostPort(*a); err == nil {
			*a = net.JoinHostPort(host, port)
		}
	}
	return m
}

// listedAt returns where the files of other servers have a server; "" if none of
// them that was heard lately has an address for it.
func (e *ensemble) listedAt(server uint64) string {
	e.joins.mu.Lock()
	defer e.joins.mu.Unlock()
	var found []string
	for of, a := range e.joins.files {
		if m := a.list.member(server); of != server && m != nil && dialable(m.QuorumAddr) {
			found = append(found, m.QuorumAddr)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found) // all leaders choose alike
}

// knownAt returns an address of a server for a list that has only a wildcard for it;
// "" if there is none.
func (e *ensemble) knownAt(server uint64, now *membership) string {
	if now != nil {
		if m := now.member(server); m != nil && dialable(m.QuorumAddr) {
			return m.QuorumAddr
		}
	}
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		if serverOf(s.ID) == server && dialable(string(s.Address)) {
			return string(s.Address)
		}
	}
	return e.listedAt(server)
}

// joinAddr is where a server that joins will be dialled.
func (e *ensemble) joinAddr(m *Member, j joiner) string {
	e.joins.mu.Lock()
	from := e.joins.from[j.id]
	e.joins.mu.Unlock()
	return firstDialable(m.ID, m.QuorumAddr, j.addr, e.listedAt(m.ID), from)
}

// whereIs is the address that Raft's configuration should have for a server; "" to
// leave what it has.
func (e *ensemble) whereIs(s raft.Server) string {
	id := serverOf(s.ID)
	var line Member
	if m := e.replicated(); m != nil && m.member(id) != nil {
		line = *m.member(id)
	}
	own := e.self.QuorumAddr
	if s.ID != e.n.identity.RaftID {
		e.joins.mu.Lock()
		own = e.joins.seen[s.ID]
		e.joins.mu.Unlock()
	}
	switch {
	case line.named && dialable(line.QuorumAddr):
		return line.QuorumAddr
	case dialable(own):
		return own
	case dialable(string(s.Address)):
		return ""
	}
	for _, m := range e.n.cfg.Members {
		if m.ID == id && dialable(m.QuorumAddr) {
			return m.QuorumAddr
		}
	}
	return e.listedAt(id)
}

// stepAddress follows a server that moved, after it has proved that it is at the new
// address.
func (e *ensemble) stepAddress(s *step, l *leading, server raft.Server) {
	r, addr := e.n.raftNow(), e.whereIs(server)
	if addr == "" && !dialable(string(server.Address)) {
		e.askFiles(l) // one of them may know
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

// isAt reports whether a server answers at an address. One that does not is asked
// again after a while only.
func (e *ensemble) isAt(server raft.Server, addr string) bool {
	if server.ID == e.n.identity.RaftID {
		return !e.moving(addr)
	}
	key := string(server.ID) + "@" + addr
	if e.asking == key && time.Since(e.askedAt) < askAgain {
		return false
	}
	ctx, cancel := context.WithTimeout(e.ctx, probeTimeout)
	defer cancel()
	a, theirs, err := ask(ctx, e.hub, addr, string(server.ID), &question{Probe: e.formation.describe()})
	if err != nil || theirs.ServerID != string(server.ID) || a.Probe == nil {
		e.asking, e.askedAt = key, time.Now()
		return false
	}
	e.joins.noteList(a.Probe)
	return true
}

const (
	// askAgain is the pause before a server that should have moved is looked for at
	// its new address again.
	askAgain = time.Second
	// listenAgain is the pause before this server tries again to listen at the address
	// that a reconfig has given it.
	listenAgain = 5 * time.Second
)

// noteAddress remembers where another server says that it is, and from where it
// says so.
func (e *ensemble) noteAddress(p *probe, from quorum.Identity, remote net.Addr) {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		host = remote.String() // of a network without ports
	}
	_, port, err := net.SplitHostPort(p.Addr)
	if err == nil && !dialable(p.Addr) && serverOf(p.As) == p.ID {
		e.joins.noteFrom(p.As, net.JoinHostPort(host, port)) // the handshake tells whether it is there
	}
	if string(p.As) != from.ServerID {
		return
	}
	if from.Cluster != e.hub.Identity().Cluster || from.Cluster == (quorum.ClusterID{}) {
		return
	}
	e.joins.noteList(p)
	if !dialable(p.Addr) {
		return
	}
	e.joins.mu.Lock()
	defer e.joins.mu.Unlock()
	if e.joins.seen == nil {
		e.joins.seen = make(map[raft.ServerID]string)
	}
	e.joins.seen[p.As] = p.Addr
}

// maxFrom bounds the servers whose connections are remembered.
const maxFrom = 1024

// noteFrom remembers from where a server has called that is configured with a
// wildcard.
func (j *joins) noteFrom(id raft.ServerID, addr string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.from == nil || len(j.from) > maxFrom {
		j.from = make(map[raft.ServerID]string)
	}
	j.from[id] = addr
}

// addresses returns where a server may be, beside the address in Raft's
// configuration: where the membership has it, where it says it is, and where this
// server's configuration file has it.
func (e *ensemble) addresses(id raft.ServerID) []string {
	var out []string
	add := func(addr string) {
		if addr != "" && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	if m := e.replicated(); m != nil {
		if x := m.member(serverOf(id)); x != nil && dialable(x.QuorumAddr) {
			add(x.QuorumAddr)
		}
	}
	e.joins.mu.Lock()
	add(e.joins.seen[id])
	from := e.joins.from[id]
	e.joins.mu.Unlock()
	for _, m := range e.n.cfg.Members {
		if m.ID == serverOf(id) {
			add(m.QuorumAddr)
		}
	}
	add(from)
	return out
}

// founders are the servers on the list, each where the lists of the others have it
// if its own line is a wildcard. f.mu is held.
func (f *formation) founders() []founder {
	all := founders(f.members)
	for i := range all {
		if dialable(all[i].Addr) {
			continue
		}
		var found []string
		for of, s := range f.table {
			list, err := parseMembership([]byte(s.probe.List))
			if err != nil || of == all[i].ID {
				continue
			}
			if m := list.member(all[i].ID); m != nil && dialable(m.QuorumAddr) {
				found = append(found, m.QuorumAddr)
			}
		}
		slices.Sort(found)
		all[i].Addr = firstDialable(all[i].ID, found...)
	}
	return all
}

// moving reports whether this server has yet to listen at an address that a reconfig
// has given it.
func (e *ensemble) moving(addr string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listenWant == addr && e.listenErr != nil
}

// followOwnAddress listens at the address that a reconfig has named for this server,
// before it lets go of the one that it has. Reconcile loop.
func (e *ensemble) followOwnAddress(m *membership) {
	line := m.member(e.self.ID)
	if line == nil || !line.named || !dialable(line.QuorumAddr) || line.QuorumAddr == e.listenWant && e.listenErr == nil ||
		time.Since(e.listenTried) < listenAgain && line.QuorumAddr == e.listenWant {
		return
	}
	want := e.listenAddr(line.QuorumAddr)
	news := line.QuorumAddr != e.listenWant
	var err error
	if want != e.listening {
		if err = e.hub.Relisten(want); err == nil {
			e.log.Info("listens for the other servers at another address", "from", e.listening, "to", want)
			e.listening = want
		}
	}
	_, is, _ := net.SplitHostPort(e.listening)
	if _, port, _ := net.SplitHostPort(want); err != nil && port == is {
		// Another name of the same address, or one that only the others can use.
		e.log.Debug("cannot listen at the address of the membership and goes on at the same port", "addr", want, "listening", e.listening, "err", err)
		err = nil
	}
	if err != nil && news {
		e.log.Error("cannot listen for the other servers at the address that a reconfig has set: it goes on at the old one and tries again; "+
			"free the port, or set another one with reconfig", "addr", want, "listening", e.listening, "err", err)
	}
	e.listenTried = time.Now()
	e.mu.Lock()
	e.listenWant, e.listenErr = line.QuorumAddr, err
	e.mu.Unlock()
}

// ownAddr is where the others dial this server.
func (e *ensemble) ownAddr() string {
	if r := e.n.raftNow(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.ID == e.n.identity.RaftID && dialable(string(s.Address)) {
				return string(s.Address)
			}
		}
	}
	return e.self.QuorumAddr
}
