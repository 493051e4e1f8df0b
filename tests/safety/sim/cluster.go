package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/transport"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/server"
)

// Layout describes the servers of a cluster.
type Layout struct {
	Voters, Observers int
	Store             raftlog.Kind
}

// String describes the layout for people.
func (l Layout) String() string {
	if l.Observers == 0 {
		return fmt.Sprintf("%d voters, %s", l.Voters, l.Store)
	}
	return fmt.Sprintf("%d voters, %d observer, %s", l.Voters, l.Observers, l.Store)
}

// Cluster is a whole ensemble in one process and in fake time: real servers on an
// in-memory network and in-memory disks.
type Cluster struct {
	layout    Layout
	dir       string
	trace     *trace
	net       *quorum.Memory
	hosts     []*host // by id − 1
	members   []raftfsm.Member
	processes sync.WaitGroup
	dials     atomic.Int64

	mu         sync.Mutex
	replays    func(host string, message any) []transport.Replay
	counts     map[string]int // counted events, by name
	violations []string
}

// host is a machine with a server: its disk and its clock outlive its processes.
type host struct {
	c     *Cluster
	id    int
	name  string
	drive *drive
	clock wallClock

	mu       sync.Mutex
	proc     *process // nil: none runs
	expected bool     // true if the server is expected to stop by itself because its disk is broken
}

const (
	tickTime  = 500 * time.Millisecond
	syncLimit = 5
)

// linearServers lists the servers that make all reads linearizable.
var linearServers = []int{1}

// NewCluster describes a cluster without starting it. The database files are
// below dir.
func NewCluster(dir string, seed uint64, l Layout) *Cluster {
	c := &Cluster{layout: l, dir: dir, trace: newTrace(), net: quorum.NewMemory(), counts: make(map[string]int)}
	for id := 1; id <= l.Voters+l.Observers; id++ {
		name := fmt.Sprintf("s%d", id)
		c.members = append(c.members, raftfsm.Member{ID: uint64(id), QuorumAddr: name + ":2888", ElectionAddr: name + ":3888",
			ClientAddr: "0.0.0.0:2181", Observer: id > l.Voters})
		c.hosts = append(c.hosts, &host{c: c, id: id, name: name, drive: newDrive(filepath.Join(dir, name), seed, uint64(id))})
	}
	return c
}

// config returns the server configuration for a process of the host. The limits
// are small, so that minutes cover events that would otherwise need days.
func (h *host) config(p *process) server.Config {
	l := h.c.layout
	return server.Config{
		DataDir: "/data", TickTime: tickTime, LinearizableReads: slices.Contains(linearServers, h.id), FourLetterWords: []string{"*"},
		Quorum: server.Quorum{ID: uint64(h.id), Members: h.c.members, SyncLimit: syncLimit, Reconfig: true},
		Log:    server.Log{Dir: "/log", Store: string(l.Store), Bolt: boltlog.Format{}, Segment: 16 << 10, SnapCount: 60, SnapTrailing: 10},
		Limits: server.Limits{MaxClientCnxns: -1}, Znodes: server.Znodes{ExtendedTypes: true}, Auth: server.Auth{SkipACL: true},
		Env: server.Env{FS: p.vol, Network: p.net, Wall: h.clock.now}, Logger: h.c.trace.logger(h.id),
	}
}

// up returns the running process, or nil if none runs.
func (h *host) up() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.proc
}

// node returns the server's replica, or nil while none runs.
func (h *host) node() *raftfsm.Node {
	p := h.up()
	if p == nil {
		return nil
	}
	select {
	case <-p.started:
	default:
		return nil
	}
	if p.srv == nil {
		return nil
	}
	return p.srv.Node()
}

func (h *host) status() raftfsm.Status {
	if n := h.node(); n != nil {
		return n.Status()
	}
	return raftfsm.Status{}
}

// startAll starts every server that does not run. A server must start whatever
// was done to it: the data that a faulty disk kept is enough.
func (c *Cluster) startAll() {
	for _, h := range c.hosts {
		if h.up() == nil {
			c.startHost(h)
		}
	}
}

func (c *Cluster) startHost(h *host) {
	h.mu.Lock()
	h.expected = false
	h.mu.Unlock()
	if err := h.start(); err != nil {
		c.violate("%v", err)
	}
}

// stoppedItself is called when a server stops by itself.
func (c *Cluster) stoppedItself(p *process, err error) {
	p.h.mu.Lock()
	expected := p.h.expected
	p.h.mu.Unlock()
	c.trace.say("server %d stops by itself: %v", p.h.id, err)
	c.note("server stopped by itself")
	if !expected {
		c.violate("server %d stops by itself, and its disk is whole: %v", p.h.id, err)
	}
}

// violate records a broken guarantee.
func (c *Cluster) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.trace.say("VIOLATION: %s", text)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, text)
}

// note counts an event.
func (c *Cluster) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// leader returns the server that leads the newest epoch, or nil if there is none.
func (c *Cluster) leader() *host {
	var lead *host
	var epoch uint32
	for _, h := range c.hosts {
		if s := h.status(); s.Role == raftfsm.Leader && s.Serving && (lead == nil || s.Epoch > epoch) {
			lead, epoch = h, s.Epoch
		}
	}
	return lead
}

// epoch returns the newest epoch that any server knows.
func (c *Cluster) epoch() uint32 {
	var epoch uint32
	for _, h := range c.hosts {
		epoch = max(epoch, h.status().Epoch)
	}
	return epoch
}

// await polls ok in fake time until it returns true or limit has passed.
func (c *Cluster) await(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// whole reports whether every server serves under one leader, and the number of
// voters is the layout's number of voters.
func (c *Cluster) whole() bool {
	lead := c.leader()
	if lead == nil || lead.node() == nil || len(lead.node().Voters()) != c.layout.Voters {
		return false
	}
	for _, h := range c.hosts {
		if s := h.status(); !s.Serving || s.Leader != uint64(lead.id) || s.Epoch != lead.status().Epoch {
			return false
		}
	}
	return true
}

// clientHost returns the host that a client's connections come from. There are
// several hosts, so that a partition can affect only some of the clients.
func clientHost(i int64) string { return fmt.Sprintf("c%d", i%3) }

// dial connects a client to a server.
func (c *Cluster) dial(ctx context.Context, id int) (net.Conn, error) {
	return c.net.Host(clientHost(c.dials.Add(1))).Dial(ctx, c.hosts[id-1].name+":2181")
}

// close ends every server and waits until all processes have ended.
func (c *Cluster) close() {
	for _, h := range c.hosts {
		if p := h.up(); p != nil {
			p.end(false)
		}
	}
	c.processes.Wait()
}

// tempDir creates a directory for the databases of a run, in memory if possible.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("/dev/shm", "zkgo-sim-")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return os.MkdirTemp("", "zkgo-sim-")
	}
	return dir, err
}

// rnd returns a random source for one purpose of a run.
func rnd(seed uint64, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }
