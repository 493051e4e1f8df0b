package zktest

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm"
)

// Cluster is an ensemble that a test runs: servers in this process, with a
// network in memory between them. Its methods are for the test's goroutine, those
// that only look and those that write also for others.
type Cluster struct {
	t       TB
	opts    options
	clock   *clock
	logs    *logs
	net     *quorum.Memory
	servers []*Server // by id − 1

	over sync.Once

	mu     sync.Mutex
	group  []int  // which side of a partition each server is on
	paused []bool // stand still
	slow   map[link]time.Duration
}

// RunCluster starts n servers, 1 to 254, and returns when all of them serve and
// have a vote: the ensemble can lose a minority of them from then on.
func RunCluster(t TB, n int, opts ...Option) *Cluster {
	t.Helper()
	o := newOptions(opts)
	c := &Cluster{t: t, opts: o, clock: newClock(), logs: &logs{t: t, now: o.logs}, net: quorum.NewMemory(),
		group: make([]int, n), paused: make([]bool, n), slow: make(map[link]time.Duration)}
	var members []raftfsm.Member
	for id := 1; id <= n; id++ {
		members = append(members, raftfsm.Member{ID: uint64(id), QuorumAddr: host(id) + ":2888", ElectionAddr: host(id) + ":3888"})
	}
	for id := 1; id <= n; id++ {
		s := newServer(t, o, id, host(id), c.clock, c.logs)
		s.cluster = c
		if n > 1 {
			s.members, s.network = members, c.net.Host(host(id))
		}
		c.servers = append(c.servers, s)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.show()
		}
		c.Close()
		c.logs.end()
	})
	for _, s := range c.servers {
		if o.port != 0 {
			s.Addrs() // a port that cannot be had is noticed before a server starts
		}
	}
	for _, s := range c.servers {
		if err := s.start(); err != nil {
			t.Fatalf("zktest: start of server %d: %v", s.id, err)
		}
	}
	for _, s := range c.servers {
		if !s.awaitReady() {
			t.Fatalf("zktest: server %d does not serve within %v: %+v", s.id, patience, s.Server().Node().Status())
		}
	}
	c.WaitServing()
	c.wait("the newest version of the log", c.settled)
	return c
}

// settled reports whether every server uses the newest version of the log, which
// the leader begins when it has heard of all of them. It is the last thing that an
// ensemble does by itself: what follows is the test's doing, and a test that ends at
// once leaves nothing uncommitted.
func (c *Cluster) settled() bool {
	for _, s := range c.servers {
		if now, newest := s.Server().Node().Level(); now < newest {
			return false
		}
	}
	return true
}

// host is what a server is called in the network between the servers, and in
// the logs.
func host(id int) string { return "server" + strconv.Itoa(id) }

// show writes what every server holds to the log of a test that has failed.
func (c *Cluster) show() {
	for _, s := range c.servers {
		if srv := s.Server(); srv != nil {
			c.t.Logf("zktest: %s, running: %v, %+v, the znodes at the end:\n%s", s.name, s.isUp(), srv.Node().Status(), s.Dump())
			s.showConversation()
		}
	}
}

// Close stops all servers before the test ends.
func (c *Cluster) Close() {
	c.t.Helper()
	c.over.Do(func() {
		// Nobody waits for an answer of somebody who is going, too.
		for _, s := range c.servers {
			c.net.Kill(host(s.id))
		}
		var wg sync.WaitGroup
		for _, s := range c.servers {
			wg.Go(s.Close)
		}
		wg.Wait()
	})
}

// Servers returns the members in the order of their ids, also those that do not
// run.
func (c *Cluster) Servers() []*Server { return append([]*Server(nil), c.servers...) }

// Server returns the member with an id, 1 to n.
func (c *Cluster) Server(id int) *Server {
	c.t.Helper()
	if id < 1 || id > len(c.servers) {
		c.t.Fatalf("zktest: there is no server %d in a cluster of %d", id, len(c.servers))
	}
	return c.servers[id-1]
}

// Addrs returns where clients find the members, in the order of their ids.
func (c *Cluster) Addrs() []string {
	c.t.Helper()
	var addrs []string
	for _, s := range c.servers {
		addrs = append(addrs, s.Addrs()...)
	}
	return addrs
}

// Hosts returns the addresses by which Dialer knows the members. They need no
// look-up.
func (c *Cluster) Hosts() []string {
	var hosts []string
	for _, s := range c.servers {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.id)))
	}
	return hosts
}

// Dialer connects to the members without a socket, for go-zookeeper's
// WithDialer. Its addresses are those of Hosts.
func (c *Cluster) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(_, address string, _ time.Duration) (net.Conn, error) { return c.dial(address) }
}

// leads returns the server that leads, as far as one can see from outside: of
// those that think so the one of the newest epoch. Nil means none.
func (c *Cluster) leads() *Server {
	var leader *Server
	var epoch uint32
	for i, s := range c.servers {
		if !s.isUp() || c.isPaused(i) {
			continue
		}
		st := s.Server().Node().Status()
		alone := st.Role == raftfsm.Standalone
		if (st.Role == raftfsm.Leader || alone) && st.Serving && (leader == nil || st.Epoch > epoch) {
			leader, epoch = s, st.Epoch
		}
	}
	return leader
}

// Leader returns the server that leads, and waits until there is one.
func (c *Cluster) Leader() (leader *Server) {
	c.t.Helper()
	c.wait("a leader", func() bool {
		leader = c.leads()
		return leader != nil
	})
	return leader
}

// LeaderNow returns the server that leads at this moment, nil if there is none.
func (c *Cluster) LeaderNow() *Server { return c.leads() }

// Follower returns a server that follows the leader, and waits until there is
// one.
func (c *Cluster) Follower() (follower *Server) {
	c.t.Helper()
	c.wait("a server that follows", func() bool {
		follower = nil
		lead := c.leads()
		if lead == nil {
			return false
		}
		for _, s := range c.servers {
			if s != lead && c.follows(s, lead) {
				follower = s
			}
		}
		return follower != nil
	})
	return follower
}

// follows reports whether s hears of lead and serves, or is lead.
func (c *Cluster) follows(s, lead *Server) bool {
	if s == lead {
		return true
	}
	if !s.isUp() || c.isPaused(s.id-1) || !c.together(s, lead) {
		return false
	}
	st := s.Server().Node().Status()
	return st.Serving && st.Leader == uint64(lead.id)
}

// WaitServing waits until every server that can be part of the ensemble serves
// and has a vote.
func (c *Cluster) WaitServing() {
	c.t.Helper()
	c.wait("all servers serve", c.Serving)
}

// Serving reports whether every server that can be part of the ensemble, because
// it runs, is not paused and is on the leader's side of a partition, serves and
// has a vote.
func (c *Cluster) Serving() bool {
	lead := c.leads()
	if lead == nil {
		return false
	}
	for i, s := range c.servers {
		able := s.isUp() && !c.isPaused(i) && c.together(s, lead)
		if able && !(c.follows(s, lead) && c.votes(s, lead)) {
			return false
		}
	}
	return true
}

// votes reports whether s has a vote as itself and lead both know: one that is
// late when the ensemble is founded, or comes back without its data, gets it
// only when it has caught up.
func (c *Cluster) votes(s, lead *Server) bool {
	id := uint64(s.id)
	return slices.Contains(lead.Server().Node().Voters(), id) && slices.Contains(s.Server().Node().Voters(), id)
}

func (c *Cluster) wait(what string, ok func() bool) {
	c.t.Helper()
	if !poll(ok) {
		c.t.Fatalf("zktest: not within %v: %s", patience, what)
	}
}

// ForceLeaderChange has the leader hand the lead to another server, and returns
// that one when it leads.
func (c *Cluster) ForceLeaderChange() *Server {
	c.t.Helper()
	old := c.Leader()
	if len(c.servers) == 1 {
		c.t.Fatal("zktest: ForceLeaderChange: there is no other server")
	}
	c.logs.say("%s is made to hand over the lead", old.name)
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err = errors.Join(old.Server().Node().Transfer(ctx), err)
		cancel()
		var lead *Server
		for range attempts {
			if lead = c.leads(); lead != nil && lead != old {
				c.logs.say("%s leads", lead.name)
				return lead
			}
			time.Sleep(longestPause)
		}
	}
	c.t.Fatalf("zktest: %s still leads after %v: %v", old.name, patience, err)
	return nil
}
