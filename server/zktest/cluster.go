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

// Cluster is an ensemble that a test runs: servers in this process, connected by an
// in-memory network. You should call its methods from the test's goroutine. Methods that
// only read or that write znodes are also safe to call from other goroutines.
type Cluster struct {
	t       TB
	opts    options
	clock   *clock
	logs    *logs
	net     *quorum.Memory
	servers []*Server // by id − 1
	outside *outside  // nil: the servers are in this process

	over sync.Once

	mu     sync.Mutex
	group  []int  // the side of the partition that each server is on
	paused []bool // whether each server is paused
	slow   map[link]time.Duration
}

// RunCluster starts n servers, 1 to 254. It returns when they all serve and have a vote, so
// the ensemble tolerates the loss of a minority from then on. With ZKTEST_ADDR, see [Run],
// every server represents that ensemble.
func RunCluster(t TB, n int, opts ...Option) *Cluster {
	t.Helper()
	o := newOptions(opts)
	if x := outsideNow(t, o); x != nil {
		c := &Cluster{t: t, opts: o, outside: x}
		for id := 1; id <= n; id++ {
			c.servers = append(c.servers, &Server{t: t, opts: o, id: id, name: host(id), outside: x, cluster: c})
		}
		return c
	}
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
		if o.addr != "" {
			s.Addrs() // report an unavailable port before a server starts
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

// settled reports whether every server uses the newest version of the log. The leader
// switches to it once it has heard from all servers, and that's the last thing an ensemble
// does on its own. We wait for it so that from then on only the test causes changes, and a
// test that ends immediately leaves nothing uncommitted.
func (c *Cluster) settled() bool {
	for _, s := range c.servers {
		if now, newest := s.Server().Node().Level(); now < newest {
			return false
		}
	}
	return true
}

// host returns the server's name in the network between the servers and in the logs.
func host(id int) string { return "server" + strconv.Itoa(id) }

// show writes each server's contents to the log of a failed test.
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
	if c.outside != nil {
		return
	}
	c.over.Do(func() {
		// We cut the network first, so that no server waits for a reply from one that is
		// closing.
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

// Servers returns the members ordered by id, including stopped ones.
func (c *Cluster) Servers() []*Server { return append([]*Server(nil), c.servers...) }

// Server returns the member with the given id, 1 to n.
func (c *Cluster) Server(id int) *Server {
	c.t.Helper()
	if id < 1 || id > len(c.servers) {
		c.t.Fatalf("zktest: there is no server %d in a cluster of %d", id, len(c.servers))
	}
	return c.servers[id-1]
}

// Addrs returns the client addresses of the members, ordered by id.
func (c *Cluster) Addrs() []string {
	c.t.Helper()
	if c.outside != nil {
		return c.outside.list()
	}
	var addrs []string
	for _, s := range c.servers {
		addrs = append(addrs, s.Addrs()...)
	}
	return addrs
}

// Hosts returns the addresses of the members for Dialer. They don't need name
// resolution.
func (c *Cluster) Hosts() []string {
	if c.outside != nil {
		return c.outside.list()
	}
	var hosts []string
	for _, s := range c.servers {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.id)))
	}
	return hosts
}

// Dialer connects to the members without a socket, for go-zookeeper's WithDialer. It accepts
// the addresses that Hosts returns.
func (c *Cluster) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	if c.outside != nil {
		return net.DialTimeout
	}
	return func(_, address string, _ time.Duration) (net.Conn, error) { return c.dial(address) }
}

// leads returns the leader as seen from outside, i.e. the server with the newest epoch among
// the servers that consider themselves leader. It returns nil if there is none.
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

// Leader waits until there is a leader and returns it.
func (c *Cluster) Leader() (leader *Server) {
	c.t.Helper()
	c.inProcess(needsInsight)
	c.wait("a leader", func() bool {
		leader = c.leads()
		return leader != nil
	})
	return leader
}

// LeaderNow returns the current leader, or nil.
func (c *Cluster) LeaderNow() *Server {
	c.t.Helper()
	c.inProcess(needsInsight)
	return c.leads()
}

// Follower waits until a server follows the leader and returns that server.
func (c *Cluster) Follower() (follower *Server) {
	c.t.Helper()
	c.inProcess(needsInsight)
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

// follows reports whether s is lead, or serves and hears from lead.
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

// WaitServing waits until every server that can be part of the ensemble serves and
// has a vote.
func (c *Cluster) WaitServing() {
	c.t.Helper()
	if c.outside != nil {
		return
	}
	c.wait("all servers serve", c.Serving)
}

// Serving reports whether every server that can be part of the ensemble serves and
// has a vote. A server can be part of it if it runs, isn't paused, and is on the
// leader's side of a partition.
func (c *Cluster) Serving() bool {
	if c.outside != nil {
		return true
	}
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

// votes reports whether both s and lead list s as a voter. If a server is late when the
// ensemble forms, or restarts without its data, it gets its vote only after it has caught
// up.
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

// ForceLeaderChange makes the leader transfer leadership to another server, and
// returns the new leader when it leads.
func (c *Cluster) ForceLeaderChange() *Server {
	c.t.Helper()
	c.inProcess(needsFaults)
	old := c.Leader()
	if len(c.servers) == 1 {
		c.t.Fatal("zktest: ForceLeaderChange: there is no other server")
	}
	c.logs.printf("%s has to transfer leadership", old.name)
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err = errors.Join(old.Server().Node().Transfer(ctx), err)
		cancel()
		var lead *Server
		for range attempts {
			if lead = c.leads(); lead != nil && lead != old {
				c.logs.printf("%s leads", lead.name)
				return lead
			}
			time.Sleep(longestPause)
		}
	}
	c.t.Fatalf("zktest: %s still leads after %v: %v", old.name, patience, err)
	return nil
}
