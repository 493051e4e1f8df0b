package raftfsm

import (
	"net"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/peer"
)

// security is how the connections between the servers are made secure.
func (e *ensemble) security() peer.Security {
	s := peer.Security{SASL: e.n.cfg.SASL}
	if e.n.cfg.TLS != nil {
		t := *e.n.cfg.TLS
		t.Hosts = e.hosts
		s.TLS = &t
	}
	return s
}

// hosts returns the hosts at which a server is known and those of all others:
// by the configuration file, the membership and Raft's configuration. What servers have said
// of themselves does not count, since it is what is to be proved.
func (e *ensemble) hosts(server string) (its, others []string) {
	note := func(id uint64, addr string) {
		host, _, err := net.SplitHostPort(addr)
		switch {
		case err != nil:
		case id == serverOf(raft.ServerID(server)) && !slices.Contains(its, host):
			its = append(its, host)
		case id != serverOf(raft.ServerID(server)) && !slices.Contains(others, host):
			others = append(others, host)
		}
	}
	for _, m := range e.n.cfg.Members {
		note(m.ID, m.QuorumAddr)
	}
	if m := e.replicated(); m != nil {
		for _, s := range m.members {
			note(s.ID, s.QuorumAddr)
		}
	}
	if r := e.n.raftNow(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			note(serverOf(s.ID), string(s.Address))
		}
	}
	return its, others
}
