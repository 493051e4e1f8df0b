package ensemble

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// How a server joins an existing ensemble.
//
// The server asks repeatedly, in its probes. It can't prove its identity, because it has
// no cluster id yet. So the leader doesn't send the cluster id in its reply. Instead, it
// calls the server at the address in the membership, or in a configuration file, or at the
// port that the server announces on that host, and sends the token of the probe and the
// cluster id there. A server that asks under
// another server's id gets no cluster id, and isn't added to Raft's configuration.

// ProbeTimeout bounds a question that another server answers immediately.
const ProbeTimeout = exchange.Timeout

// joiner is a server with a ServerID, i.e. a disk, that isn't in Raft's configuration.
type joiner struct {
	id        raft.ServerID
	addr      string
	at        time.Time // when it last asked
	confirmed bool      // reached by a call from the leader, or has proved to belong to the ensemble
	reached   string    // the address of that call
	missed    time.Time // when the leader first failed to reach it for the line below
	line      string
	told      bool // that it can't be reached
}

func (j joiner) fresh() bool { return time.Since(j.at) < bootstrap.FreshFor }

// AbsentAfter limits the time that the leader tries to reach a joining server that
// asks. After that, a reconfig that lists the server is carried out as if it were down:
// it joins when the leader reaches it.
const AbsentAfter = 2 * time.Second

// absent reports whether the leader can't reach the server for a line of the membership.
func (j joiner) absent(m *membership.Member) bool {
	return !j.confirmed && j.line == m.Line() && time.Since(j.missed) >= AbsentAfter
}

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
	if old.id == n.id && !n.confirmed {
		n.missed, n.line, n.told = old.missed, old.line, old.told
	}
	if old.id == n.id && old.fresh() && n.reached == "" {
		n.reached = old.reached
	}
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

// miss notes that a server could not be reached for a line of the membership. It reports
// whether to log that: once, when the server counts as absent.
func (j *joins) miss(id raft.ServerID, m *membership.Member) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	x, ok := j.joiners[m.ID]
	if !ok || x.id != id || x.confirmed {
		return false
	}
	if x.line != m.Line() {
		x.missed, x.line, x.told = time.Now(), m.Line(), false
	}
	news := x.absent(m) && !x.told
	x.told = x.told || news
	j.joiners[m.ID] = x
	return news
}

// queue returns the channel of probes from servers that wait to be admitted.
func (j *joins) queue() chan *bootstrap.Probe {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting == nil {
		j.waiting = make(chan *bootstrap.Probe, 16)
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
func (j *joining) join(p *bootstrap.Probe, from quorum.Identity) (refusal string) {
	cluster := j.hub.Identity().Cluster
	proved := cluster != (quorum.ClusterID{}) && from.Cluster == cluster && from.ServerID == string(p.As)
	if p.Phase == bootstrap.PhaseMember && !proved {
		return "it belongs to another ensemble"
	}
	if membership.ServerOf(p.As) != p.ID {
		return fmt.Sprintf("it calls itself %d and %s", p.ID, p.As)
	}
	if now, _ := j.env.Machine.Levels(); p.Level < now {
		return fmt.Sprintf("the ensemble is at behaviour level %d, which all its servers know, and server %d knows only %d: upgrade it", now, p.ID, p.Level)
	}
	want, now := j.changes.wanted(), j.replicated()
	// For a member, only a proved probe counts. For any other server, its list matters once
	// this server is to add it.
	if proved || (now == nil || now.Member(p.ID) == nil) && (want.Lists(p.ID) || j.files.fileList().Lists(p.ID)) {
		j.places.joins.noteList(p)
	}
	for _, s := range j.env.RaftNow().GetConfiguration().Configuration().Servers {
		switch {
		case s.ID == p.As:
			if !proved {
				j.admission(p)
			}
			return ""
		case membership.ServerOf(s.ID) == p.ID && j.alive(s.ID):
			return fmt.Sprintf("server %d is already running, with another data directory", p.ID)
		}
	}
	j.places.joins.note(p.ID, joiner{id: p.As, addr: p.Addr, at: time.Now(), confirmed: proved})
	if !want.Lists(p.ID) {
		return j.stranger(p)
	}
	j.changes.reconfigs.poke()
	if !proved {
		j.admission(p)
	}
	return ""
}

// admission queues a server to be admitted, unless the queue is full.
func (j *joining) admission(p *bootstrap.Probe) {
	select {
	case j.places.joins.queue() <- p:
	default:
	}
}

// admitLoop calls the servers that ask to join.
func (j *joining) admitLoop() {
	queue := j.places.joins.queue()
	for {
		select {
		case p := <-queue:
			if j.places.joins.call(p.ID) {
				j.wg.Go(func() {
					defer j.places.joins.called(p.ID)
					j.admitOne(p)
				})
			}
		case <-j.ctx.Done():
			return
		}
	}
}

// admitOne calls a server at all its possible addresses until it accepts its admission.
func (j *joining) admitOne(p *bootstrap.Probe) {
	addrs := j.mayBeAt(p.ID, p.Addr)
	if len(addrs) == 0 { // the membership has only a wildcard for it: use the address that it asked from
		j.places.joins.mu.Lock()
		addrs = []string{j.places.joins.calledFrom(p.As)}
		j.places.joins.mu.Unlock()
	}
	for _, addr := range addrs {
		ctx, cancel := context.WithTimeout(j.ctx, ProbeTimeout)
		err := (&bootstrap.Admission{Cluster: j.hub.Identity().Cluster, ServerID: p.As, Token: p.Token}).Offer(ctx, j.hub, addr)
		cancel()
		if err == nil {
			j.places.joins.note(p.ID, joiner{id: p.As, addr: addr, at: time.Now(), confirmed: true, reached: addr})
			j.changes.reconfigs.poke()
			return
		}
		j.log.Debug("a server that asked to join did not accept its admission", "server", p.ID, "addr", addr, "err", err)
	}
	if want := j.changes.wanted(); want.Lists(p.ID) && j.places.joins.miss(p.As, want.Member(p.ID)) {
		j.log.Warn("cannot reach a server that asked to join; trying again; check its line in the membership, and the network",
			"server", p.ID, "says", p.Addr, "tried", addrs)
	}
}

// mayBeAt returns a server's addresses in the membership and in the configuration files of
// this server and of other members. They may have another port than the server's own file,
// which a reconfig changes only when it is done. So mayBeAt adds the port that the server
// itself announces, but not its host, which could be any caller's.
func (j *joining) mayBeAt(server uint64, announced string) []string {
	var out []string
	add := func(addr string) {
		if membership.Dialable(addr) && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	for _, list := range []*membership.List{j.changes.wanted(), j.files.fileList()} {
		if list.Lists(server) {
			for _, addr := range list.Member(server).QuorumAddrs() {
				add(addr)
			}
		}
	}
	add(j.places.listedAt(server))
	_, port, err := net.SplitHostPort(announced)
	if err != nil {
		return out
	}
	for _, addr := range out {
		host, _, _ := net.SplitHostPort(addr)
		add(net.JoinHostPort(host, port))
	}
	return out
}
