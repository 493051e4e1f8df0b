package chaos

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest scheme uses SHA-1
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// patience bounds every wait for a healthy ensemble: even a loaded machine needs much less.
const patience = 120 * time.Second

// superUser is the administrator of the ensembles.
const superUser = "super:chaos"

var superDigest = func() string {
	sum := sha1.Sum([]byte(superUser)) //nolint:gosec // see above
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}()

// Options describes the ensemble to run.
type Options struct {
	Bin       string // path of the zkgo binary
	Dir       string // all files are below it
	Servers   int
	Store     string // wal or bolt
	SnapCount int    // transactions between snapshots
	Seed      uint64 // of the network
	Network   string // Proxies or Namespaces; empty: Proxies
	Linear    []int  // servers that are configured to make all reads linearizable
}

// Cluster is an ensemble of real processes.
type Cluster struct {
	Members []*Member

	net   fabric
	opt   Options
	ports ports
	trace *Trace

	mu      sync.Mutex
	leads   map[int64]int // leader by epoch
	states  []Status      // newest, by member
	asked   []int         // incremented by forget: older status replies don't count
	changed chan struct{} // closed when states changes
	stop    context.CancelFunc
	wg      sync.WaitGroup
}

// ports are the same at every server.
type ports struct{ quorum, election, client, admin int }

// NewCluster writes the configuration of an ensemble.
func NewCluster(opt Options, trace *Trace) (*Cluster, error) {
	c := &Cluster{opt: opt, trace: trace,
		leads: map[int64]int{}, states: make([]Status, opt.Servers), asked: make([]int, opt.Servers), changed: make(chan struct{})}
	for id := 1; id <= opt.Servers; id++ {
		c.Members = append(c.Members, &Member{ID: id, c: c, dir: filepath.Join(opt.Dir, fmt.Sprintf("server%d", id))})
	}
	var err error
	if c.net, err = newFabric(c); err != nil {
		return nil, err
	}
	for _, m := range c.Members {
		err = errors.Join(err, c.net.attach(m))
	}
	for _, m := range c.Members {
		err = errors.Join(err, m.configure())
	}
	if err != nil {
		c.net.close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	for i := range c.Members {
		c.wg.Go(func() { c.observe(ctx, i) })
	}
	return c, nil
}

// Start starts every server and waits until all serve.
func (c *Cluster) Start() error {
	for _, m := range c.Members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return c.AwaitHealthy()
}

// Close kills everything.
func (c *Cluster) Close() {
	c.stop()
	c.wg.Wait()
	for _, m := range c.Members {
		m.Kill()
	}
	c.net.close()
}

// Explain makes every server print its goroutines, which ends it.
func (c *Cluster) Explain() {
	for _, m := range c.Members {
		if p := m.running(); p != nil && p.Signal(syscall.SIGQUIT) == nil {
			_ = p.Signal(syscall.SIGCONT)
			_, _ = p.Exit(patience)
		}
	}
}

// Dial connects a client to a server over the network. The client number selects
// the client's place in the network.
func (c *Cluster) Dial(ctx context.Context, client, server int) (net.Conn, error) {
	return c.net.dialFrom(ctx, client, c.Members[server-1])
}

// observe polls the status of a server.
func (c *Cluster) observe(ctx context.Context, i int) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		asked := c.asked[i]
		c.mu.Unlock()
		s, err := c.Members[i].Status()
		if err != nil {
			s = Status{}
		}
		c.note(i, asked, s)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// forget drops the status that the servers have reported so far.
func (c *Cluster) forget(ms ...*Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range ms {
		c.asked[m.ID-1]++
		c.states[m.ID-1] = Status{}
	}
}

func (c *Cluster) note(i, asked int, s Status) {
	c.mu.Lock()
	if asked != c.asked[i] {
		c.mu.Unlock()
		return
	}
	old := c.states[i]
	c.states[i] = s
	if s.Mode == "leader" && c.leads[s.Epoch()] == 0 && s.Epoch() > 0 {
		c.leads[s.Epoch()] = i + 1
		defer c.trace.Printf("server %d leads epoch %d", i+1, s.Epoch())
	}
	if old != s {
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	if old.Mode != s.Mode {
		c.trace.Printf("server %d is %q, was %q", i+1, s.Mode, old.Mode)
	}
}

// Elections returns the number of epochs in which a leader was seen.
func (c *Cluster) Elections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.leads)
}

// Await waits until f returns true for the servers' status.
func (c *Cluster) Await(what string, within time.Duration, f func([]Status) bool) error {
	return c.await(what, within, f, nil)
}

// logged reports whether any server has ever logged a text.
func (c *Cluster) logged(text string) bool {
	for _, m := range c.Members {
		if b, err := os.ReadFile(m.Log()); err == nil && bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}

// await is Await, but ends early if giveUp is not nil and returns an error.
func (c *Cluster) await(what string, within time.Duration, f func([]Status) bool, giveUp func() error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(within)
	for {
		c.mu.Lock()
		states, changed := slices.Clone(c.states), c.changed
		c.mu.Unlock()
		if f(states) {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
			if giveUp == nil {
				continue
			}
			if err := giveUp(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		case <-timeout:
			return fmt.Errorf("not seen within %v: %s; the servers are %+v", within, what, states)
		}
	}
}

// AwaitHealthy waits until every server serves, one leads, and the others have
// caught up with the zxid that the leader had then.
func (c *Cluster) AwaitHealthy() error {
	c.forget(c.Members...)
	var reached int64
	whole := func(states []Status) bool {
		leaders, newest := 0, int64(0)
		for _, s := range states {
			if !s.Serves() || s.Zxid < reached {
				return false
			}
			if s.Mode == "leader" {
				leaders++
				newest = s.Zxid
			}
		}
		if leaders == 1 && reached == 0 {
			reached = newest
		}
		return leaders == 1
	}
	err := c.await("all servers serve", patience, whole, c.ended)
	if err == nil {
		err = c.await("all servers have caught up", patience, whole, c.ended)
	}
	return err
}

// ended returns an error that names a server that has ended, or nil if all run.
func (c *Cluster) ended() error {
	for _, m := range c.Members {
		if p := m.running(); !p.Running() {
			return fmt.Errorf("server %d is gone; it said: %s", m.ID, last(m.Logged(0)))
		}
	}
	return nil
}

// AwaitLeader returns the leader of the newest epoch greater than above.
func (c *Cluster) AwaitLeader(above int64) (*Member, int64, error) {
	var leader *Member
	epoch := above
	err := c.Await(fmt.Sprintf("a leader of an epoch above %d", above), patience, func(states []Status) bool {
		for i, s := range states {
			if s.Mode == "leader" && s.Epoch() > epoch {
				leader, epoch = c.Members[i], s.Epoch()
			}
		}
		return leader != nil
	})
	return leader, epoch, err
}

// Leader is AwaitLeader for any epoch.
func (c *Cluster) Leader() (*Member, int64, error) { return c.AwaitLeader(0) }

// Others returns all members but one.
func (c *Cluster) Others(but *Member) []*Member {
	return slices.DeleteFunc(slices.Clone(c.Members), func(m *Member) bool { return m == but })
}

// wipe empties the server's data directory except for myid.
func (m *Member) wipe() error {
	return errors.Join(emptyDir(m.Data()), m.writeID())
}

// emptyDir removes the content of a directory, which may be a mount point.
func emptyDir(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
