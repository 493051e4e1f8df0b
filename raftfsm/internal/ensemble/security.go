package ensemble

import (
	"net"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tree"
)

// security returns how to secure the connections between servers.
func (e *Ensemble) security() quorum.Security {
	s := quorum.Security{SASL: e.env.Config.SASL}
	if e.env.Config.TLS != nil {
		t := *e.env.Config.TLS
		t.Hosts = e.hosts
		s.TLS = &t
	}
	return s
}

// warnIfOpen warns the operator of a quorum port that trusts any caller.
func (e *Ensemble) warnIfOpen() {
	addr, ok := e.hub.Addr().(*net.TCPAddr)
	if !ok || addr.IP.IsLoopback() || e.security().Authenticates() {
		return
	}
	says := "the quorum port is open: callers need not authenticate. A host that can read or redirect the traffic between the servers, " +
		"or takes the address of a server that is down, can act as a member of the ensemble"
	if e.env.Config.Policy&tree.ReconfigEnabled != 0 {
		says += "; with reconfigEnabled=true it can also change the members, and so take over all data"
	}
	e.log.Warn(says, "addr", addr.String(), "remedy", "set sslQuorum=true or quorum.auth.serverRequireSasl=true, and keep the port behind a firewall", "see", "docs/operate/quorum-security.md")
}

// RefusedMessages returns the number of Raft messages that this server has refused.
func (e *Ensemble) RefusedMessages() int64 {
	if e.hub == nil {
		return 0
	}
	return e.hub.Rejected()
}

// hosts returns the hosts of a server and the hosts of all other servers, from the
// configuration file, the membership, a reconfig that this leader carries out, and Raft's
// configuration. It ignores the hosts that servers announce themselves, because the
// servers have to prove them.
func (p *places) hosts(server string) (its, others []string) {
	note := func(id uint64, addr string) {
		host, _, err := net.SplitHostPort(addr)
		switch {
		case err != nil:
		case id == membership.ServerOf(raft.ServerID(server)) && !slices.Contains(its, host):
			its = append(its, host)
		case id != membership.ServerOf(raft.ServerID(server)) && !slices.Contains(others, host):
			others = append(others, host)
		}
	}
	for _, m := range p.env.Config.Members {
		note(m.ID, m.QuorumAddr)
	}
	for _, list := range []*membership.List{p.replicated(), p.pending.current()} {
		if list == nil {
			continue
		}
		for _, m := range list.Members {
			note(m.ID, m.QuorumAddr)
		}
	}
	if r := p.env.RaftNow(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			note(membership.ServerOf(s.ID), string(s.Address))
		}
	}
	return its, others
}
