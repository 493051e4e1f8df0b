package raftfsm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// How a server joins an existing ensemble.
//
// The server asks repeatedly, in its probes. It can't prove its identity, because it has
// no cluster id yet. So the leader doesn't send the cluster id in its reply. Instead, it
// calls the server at the address in the membership, or in a configuration file, and
// sends the token of the probe and the cluster id there. A server that asks under
// another server's id gets no cluster id, and isn't added to Raft's configuration.

// joiner is a server whose ServerID, i.e. its disk, isn't in Raft's configuration.
type joiner struct {
	id        raft.ServerID
	addr      string
	at        time.Time // when it last asked
	confirmed bool      // reached at its address in the membership, or has proved to belong to the ensemble
}

func (j joiner) fresh() bool { return time.Since(j.at) < freshFor }

func (j *joins) of(server uint64) joiner {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.joiners[server]
}

// note remembers a server that asks. An unconfirmed joiner doesn't replace a fresh
// confirmed one.
func (j *joins) note(server uint64, n joiner) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.joiners == nil {
		j.joiners = make(map[uint64]joiner)
	}
	old := j.joiners[server]
	if old.confirmed && old.fresh() {
		if old.id != n.id && !n.confirmed {
			return
		}
		if old.id == n.id && !n.confirmed {
			n.confirmed, n.addr = true, old.addr
		}
	}
	j.joiners[server] = n
}

// queue returns the channel of probes whose servers wait to be admitted.
func (j *joins) queue() chan *probe {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting == nil {
		j.waiting = make(chan *probe, 16)
	}
	return j.waiting
}

// call marks a server as being called. It returns false if it already is.
func (j *joins) call(server uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.calling[server] {
		return false
	}
	if j.calling == nil {
		j.calling = make(map[uint64]bool)
	}
	j.calling[server] = true
	return true
}

func (j *joins) called(server uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.calling, server)
}

// join handles, on the leader, the probe of a server that asks to join. If the server
// belongs to the membership, the leader admits it and then adds it to Raft's
// configuration. Otherwise join returns the reason for the refusal.
func (e *ensemble) join(p *probe, from quorum.Identity) (refusal string) {
	cluster := e.hub.Identity().Cluster
	proved := cluster != (quorum.ClusterID{}) && from.Cluster == cluster && from.ServerID == string(p.As)
	if p.Phase == phaseMember && !proved {
		return "it belongs to another ensemble"
	}
	if serverOf(p.As) != p.ID {
		return fmt.Sprintf("it calls itself %d and %s", p.ID, p.As)
	}
	if now, _ := e.n.Level(); p.Level < now {
		return fmt.Sprintf("the ensemble is at behaviour level %d, which all its servers know, and server %d knows only %d: upgrade it", now, p.ID, p.Level)
	}
	want, now := e.wanted(), e.replicated()
	if proved || now == nil || now.member(p.ID) == nil {
		e.joins.noteList(p) // for a member, only a proved probe counts
	}
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		switch {
		case s.ID == p.As:
			if !proved {
				e.admission(p)
			}
			return ""
		case serverOf(s.ID) == p.ID && e.alive(s.ID):
			return fmt.Sprintf("server %d is running already, on another data directory", p.ID)
		}
	}
	e.joins.note(p.ID, joiner{id: p.As, addr: p.Addr, at: time.Now(), confirmed: proved})
	if want == nil || want.member(p.ID) == nil {
		return e.stranger(p)
	}
	e.reconfigs.poke()
	if !proved {
		e.admission(p)
	}
	return ""
}

// admission queues a server to be admitted, unless the queue is full.
func (e *ensemble) admission(p *probe) {
	select {
	case e.joins.queue() <- p:
	default:
	}
}

// admitLoop calls the servers that ask to join.
func (e *ensemble) admitLoop() {
	queue := e.joins.queue()
	for {
		select {
		case p := <-queue:
			if e.joins.call(p.ID) {
				e.wg.Go(func() {
					defer e.joins.called(p.ID)
					e.admitOne(p)
				})
			}
		case <-e.ctx.Done():
			return
		}
	}
}

// admitOne calls a server at all its possible addresses until it accepts its admission.
func (e *ensemble) admitOne(p *probe) {
	addrs := e.mayBeAt(p.ID)
	if len(addrs) == 0 { // the membership has only a wildcard for it: use the address that it asked from
		e.joins.mu.Lock()
		addrs = []string{e.joins.from[p.As]}
		e.joins.mu.Unlock()
	}
	for _, addr := range addrs {
		ctx, cancel := context.WithTimeout(e.ctx, probeTimeout)
		a, _, err := ask(ctx, e.hub, addr, "", &question{Admit: &admission{Cluster: e.hub.Identity().Cluster, ServerID: p.As, Token: p.Token}})
		cancel()
		if err == nil && a.Admitted {
			e.joins.note(p.ID, joiner{id: p.As, addr: addr, at: time.Now(), confirmed: true})
			e.reconfigs.poke()
			return
		}
		e.log.Debug("a server that asks to be let in does not take its admission", "server", p.ID, "addr", addr, "err", err)
	}
}

// mayBeAt returns a server's addresses in the membership and in the configuration files of
// this server and of other members.
func (e *ensemble) mayBeAt(server uint64) []string {
	var out []string
	for _, list := range []*membership{e.wanted(), e.fileList()} {
		if list == nil || list.member(server) == nil {
			continue
		}
		m := list.member(server)
		for _, addr := range append([]string{m.QuorumAddr}, m.Alternates...) {
			if dialable(addr) && !slices.Contains(out, addr) {
				out = append(out, addr)
			}
		}
	}
	if addr := e.listedAt(server); addr != "" && !slices.Contains(out, addr) {
		out = append(out, addr)
	}
	return out
}
