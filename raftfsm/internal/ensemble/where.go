package ensemble

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
	"github.com/zkgo/zkgo/raftfsm/internal/multiaddr"
)

// The addresses of the servers. Raft's configuration has one address for each server,
// which the others dial. It comes from, in this order,
//
//   - the server's line in the membership, if a client's reconfig has set it,
//   - the server itself, which announces the address in its own configuration file,
//   - the lists of the other servers, if the server itself is configured with a wildcard,
//     e.g. 0.0.0.0: a wildcard is an address to listen at, not one to dial.
//
// A wildcard never gets into Raft's configuration. A server without any known address has
// the placeholder there, which can't be dialled. The others find it through their own
// files (see addresses).

// places finds the addresses of the servers.
type places struct {
	*base
	joins   joins
	blames  multiaddr.Blames
	pending *reconfigs // the leader's

	// Used by the reconcile loop only.
	listening   []string  // the addresses of the quorum port
	listenTried time.Time // when it last tried to listen on another address
	asking      string    // the server and address that last didn't answer,
	askedAt     time.Time // and when

	// Guarded by base.mu.
	listenWant []string // the quorum addresses that a reconfig has set for this server,
	listenErr  error    // and why it can't listen there
}

// listedAt returns the address of a server in the files of other servers, or "" if none
// of the files heard recently has one.
func (p *places) listedAt(server uint64) string {
	p.joins.mu.Lock()
	defer p.joins.mu.Unlock()
	var found []string
	for of, a := range p.joins.files {
		if m := a.list.Member(server); of != server && m != nil && membership.Dialable(m.QuorumAddr) {
			found = append(found, m.QuorumAddr)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found) // all leaders choose the same address
}

// knownAt returns an address of a server for a list that has only a wildcard for it, or
// "" if none is known.
func (p *places) knownAt(server uint64, now *membership.List) string {
	if now != nil {
		if m := now.Member(server); m != nil && membership.Dialable(m.QuorumAddr) {
			return m.QuorumAddr
		}
	}
	for _, s := range p.env.RaftNow().GetConfiguration().Configuration().Servers {
		if membership.ServerOf(s.ID) == server && membership.Dialable(string(s.Address)) {
			return string(s.Address)
		}
	}
	return p.listedAt(server)
}

// joinAddr returns the address at which to dial a joining server: the address at which we
// reached it, until it listens at its address in the membership.
func (p *places) joinAddr(m *membership.Member, j joiner) string {
	if j.reached != "" {
		return j.reached
	}
	p.joins.mu.Lock()
	from := p.joins.calledFrom(j.id)
	p.joins.mu.Unlock()
	return membership.FirstDialable(m.ID, m.QuorumAddr, j.addr, p.listedAt(m.ID), from)
}

// whereIs returns the address that Raft's configuration should have for a server, or ""
// to keep the current one.
func (p *places) whereIs(s raft.Server) string {
	id := membership.ServerOf(s.ID)
	var line membership.Member
	if m := p.replicated(); m != nil && m.Member(id) != nil {
		line = *m.Member(id)
	}
	own := p.self.QuorumAddr
	if s.ID != p.env.Identity.RaftID {
		p.joins.mu.Lock()
		own = p.joins.seen[s.ID]
		p.joins.mu.Unlock()
	}
	switch {
	case line.ByReconfig() && membership.Dialable(line.QuorumAddr):
		return line.QuorumAddr
	case membership.Dialable(own):
		return own
	case membership.Dialable(string(s.Address)):
		return ""
	}
	for _, m := range p.env.Config.Members {
		if m.ID == id && membership.Dialable(m.QuorumAddr) {
			return m.QuorumAddr
		}
	}
	return p.listedAt(id)
}

// stepAddress follows a server that moved, after the server has proved that it is at
// the new address.
func (c *changes) stepAddress(s *step, l *leading, server raft.Server) {
	r, addr := c.env.RaftNow(), c.places.whereIs(server)
	if addr == "" && !membership.Dialable(string(server.Address)) {
		c.places.askFiles(l) // another server may know
		addr = c.places.whereIs(server)
	}
	if addr == "" || addr == string(server.Address) || !c.places.isAt(server, addr) {
		return
	}
	s.what = fmt.Sprintf("move server %s from %s to %s", server.ID, server.Address, addr)
	s.change = func() error {
		if server.Suffrage == raft.Voter {
			return r.AddVoter(server.ID, raft.ServerAddress(addr), 0, ChangeTimeout).Error()
		}
		return r.AddNonvoter(server.ID, raft.ServerAddress(addr), 0, ChangeTimeout).Error()
	}
}

// isAt reports whether a server answers at an address. After a failure, it doesn't ask
// the server again for a while.
func (p *places) isAt(server raft.Server, addr string) bool {
	if server.ID == p.env.Identity.RaftID {
		return !p.moving(addr)
	}
	key := string(server.ID) + "@" + addr
	if p.asking == key && time.Since(p.askedAt) < askAgain {
		return false
	}
	ctx, cancel := context.WithTimeout(p.ctx, ProbeTimeout)
	defer cancel()
	q, theirs, err := p.formation.Probe(ctx, addr, string(server.ID))
	if err != nil || theirs.ServerID != string(server.ID) {
		p.asking, p.askedAt = key, time.Now()
		return false
	}
	p.joins.noteList(q)
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
func (p *places) noteAddress(q *bootstrap.Probe, from quorum.Identity, remote net.Addr) {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		host = remote.String() // of a network without ports
	}
	_, port, err := net.SplitHostPort(q.Addr)
	if err == nil && !membership.Dialable(q.Addr) && membership.ServerOf(q.As) == q.ID {
		p.joins.noteFrom(q.As, net.JoinHostPort(host, port)) // the handshake verifies the server
	}
	if string(q.As) != from.ServerID {
		return
	}
	if from.Cluster != p.hub.Identity().Cluster || from.Cluster == (quorum.ClusterID{}) {
		return
	}
	p.joins.noteList(q)
	if !membership.Dialable(q.Addr) {
		return
	}
	p.joins.mu.Lock()
	defer p.joins.mu.Unlock()
	if p.joins.seen == nil {
		p.joins.seen = make(map[raft.ServerID]string)
	}
	p.joins.seen[q.As] = q.Addr
}

// caller is a ServerID and the address from which it has called.
type caller struct {
	id   raft.ServerID
	addr string
}

// MaxCallers limits, per server id, the number of ServerIDs with remembered calling
// addresses.
const MaxCallers = 16

// noteFrom remembers the address from which a server with a wildcard address has called.
// A caller may claim any ServerID, so if there are too many, we forget only the caller of
// the same server id that has been silent the longest.
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

// Addresses returns the addresses that a server may have besides its address in Raft's
// configuration: from the membership, from its own announcement, from this server's
// configuration file, and the address it has called from.
func (p *places) Addresses(id raft.ServerID) []string {
	var out []string
	add := func(addr string) {
		if addr != "" && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	if m := p.replicated(); m != nil {
		if x := m.Member(membership.ServerOf(id)); x != nil && membership.Dialable(x.QuorumAddr) {
			add(x.QuorumAddr)
		}
	}
	p.joins.mu.Lock()
	add(p.joins.seen[id])
	from := p.joins.calledFrom(id)
	p.joins.mu.Unlock()
	for _, m := range p.env.Config.Members {
		if m.ID == membership.ServerOf(id) {
			add(m.QuorumAddr)
		}
	}
	add(from)
	return out
}

// moving reports whether this server can't listen yet at an address that a reconfig has
// set for it.
func (p *places) moving(addr string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listenErr != nil && p.listenWant[0] == addr
}

// followOwnAddress makes this server listen at the addresses that a reconfig has set for
// it, before it closes the old ones. Reconcile loop.
func (p *places) followOwnAddress(m *membership.List) {
	line := m.Member(p.self.ID)
	if line == nil || !line.ByReconfig() || !membership.Dialable(line.QuorumAddr) {
		return
	}
	asked := line.QuorumAddrs()
	news := !slices.Equal(asked, p.listenWant)
	if !news && (p.listenErr == nil || time.Since(p.listenTried) < listenAgain) {
		return
	}
	want := p.listenAddrs(line)
	var err error
	if !slices.Equal(want, p.listening) {
		var now []string
		now, err = p.hub.Relisten(want...)
		if !slices.Equal(now, p.listening) && now != nil {
			p.log.Info("listens for the other servers at another address", "from", strings.Join(p.listening, "|"), "to", strings.Join(now, "|"))
			p.listening = now
		}
	}
	if err != nil && slices.Equal(portsOf(want), portsOf(p.listening)) {
		// These are other names for the same addresses, or addresses that only the others
		// can use.
		p.log.Debug("cannot listen at the addresses of the membership; keeping the old ports", "want", want, "listening", p.listening, "err", err)
		err = nil
	}
	if err != nil && news {
		p.log.Error("cannot listen for the other servers at the address that a reconfig has set: keeping the old one and trying again; "+
			"free the port, or set another one with reconfig", "addr", strings.Join(want, "|"), "listening", strings.Join(p.listening, "|"), "err", err)
	}
	p.listenTried = time.Now()
	p.mu.Lock()
	p.listenWant, p.listenErr = asked, err
	p.mu.Unlock()
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

// namesEvery is the pause between two lookups of the host names of the other servers.
const namesEvery = 30 * time.Second

// network returns the network in which this server dials the others.
func (p *places) network() quorum.Network {
	return multiaddr.Network{Network: p.env.Config.Network, Alternates: p.alternates, Blames: &p.blames}
}

// keepNames looks up the host names of the other servers from time to time, including
// servers that it hasn't dialled, so that this server knows their addresses if DNS fails.
func (p *places) keepNames() {
	n := p.network()
	for p.ctx.Err() == nil {
		for _, m := range p.knownMembers() {
			for _, addr := range append([]string{m.QuorumAddr}, p.alternates(m.QuorumAddr)...) {
				if m.ID != p.self.ID && !quorum.LookUp(n, addr) {
					return // the network has no host names
				}
			}
		}
		pauseFor(p.ctx, namesEvery)
	}
}

// alternates returns the other addresses of the server with first address addr. It reads
// them from the membership, which may be newer than the configuration file.
func (p *places) alternates(addr string) []string {
	list := p.env.Config.Members
	if m := p.replicated(); m != nil {
		list = slices.Concat(m.Members, list)
	}
	for _, m := range list {
		if m.QuorumAddr == addr {
			return m.Alternates
		}
	}
	return nil
}
