package raftfsm

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/wait"
	"github.com/zkgo/zkgo/tree"
)

// cluster is an ensemble in one process.
type cluster struct {
	t       *testing.T
	net     *quorum.Memory
	list    []membership.Member // of the configuration files
	configs map[uint64]Config
	rigs    map[uint64]*rig
	closing map[uint64]chan struct{} // killed servers; closed when Close has returned
	disks   string                   // directories of the servers; empty: in memory
}

func hostOf(id uint64) string { return fmt.Sprintf("s%d", id) }

// memberAt returns a server as listed in a test's configuration files.
func memberAt(id uint64) membership.Member {
	return membership.Member{ID: id, QuorumAddr: hostOf(id) + ":2888", ElectionAddr: hostOf(id) + ":3888", ClientAddr: "0.0.0.0:2181"}
}

// newCluster returns an ensemble of n voters without starting them.
func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{t: t, net: quorum.NewMemory(), configs: make(map[uint64]Config), rigs: make(map[uint64]*rig), closing: make(map[uint64]chan struct{})}
	for id := uint64(1); id <= uint64(n); id++ {
		c.list = append(c.list, memberAt(id))
	}
	return c
}

// onDisk gives the servers directories, so that they can be restarted.
func (c *cluster) onDisk() *cluster {
	c.disks = c.t.TempDir()
	return c
}

func (c *cluster) dir(id uint64) string { return fmt.Sprintf("%s/%d", c.disks, id) }

// start starts a server without waiting for it.
func (c *cluster) start(id uint64, tune ...func(*Config)) *rig {
	c.t.Helper()
	c.awaitClosed(id)
	r := &rig{recorder: newRecorder(), t: c.t}
	cfg := Config{ID: id, Members: c.list, Peers: Peers{Network: c.net.Host(hostOf(id))}, Handler: r.recorder,
		TickTime: 200 * time.Millisecond, Policy: tree.ExtendedTypes | tree.ReconfigEnabled}
	if c.disks == "" {
		cfg.Memory = true
	} else {
		cfg.Log.Dir, cfg.DataDir = c.dir(id)+"/log", c.dir(id)+"/snap"
	}
	if os.Getenv("ZKGO_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("server", id)
	}
	for _, f := range tune {
		f(&cfg)
	}
	n, err := startNode(cfg)
	if err != nil {
		c.t.Fatalf("server %d: %v", id, err)
	}
	r.Node = n
	c.rigs[id] = r
	c.t.Cleanup(func() { n.Close() })
	return r
}

// startAll starts every listed server and waits until all serve.
func (c *cluster) startAll(tune ...func(*Config)) {
	c.t.Helper()
	for _, m := range c.list {
		c.start(m.ID, tune...)
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
}

// kill ends a server abruptly, like a killed process.
func (c *cluster) kill(id uint64) {
	c.t.Helper()
	c.net.Kill(hostOf(id))
	r := c.rigs[id]
	delete(c.rigs, id)
	closed := make(chan struct{})
	c.closing[id] = closed
	go func() { // Close may wait for servers that it can't reach
		defer close(closed)
		r.Close()
	}()
	c.t.Cleanup(func() { <-closed })
}

// awaitClosed waits until a killed server has closed its files.
func (c *cluster) awaitClosed(id uint64) {
	if ch := c.closing[id]; ch != nil && c.disks != "" {
		<-ch
	}
}

// stop closes a server cleanly.
func (c *cluster) stop(id uint64) {
	c.t.Helper()
	r := c.rigs[id]
	delete(c.rigs, id)
	r.close()
}

// awaitServed waits until the server serves.
func (r *rig) awaitServed() Status {
	r.t.Helper()
	r.recorder.wait(r.t, "serving", func() bool { return r.Status().Serving })
	return r.Status()
}

// member returns the part of a member that knows the other servers.
func (r *rig) member() *ensemble.Ensemble {
	r.t.Helper()
	e, ok := r.peers.(*ensemble.Ensemble)
	if !ok {
		r.t.Fatalf("server %d is no member of an ensemble: %T", r.cfg.ID, r.peers)
	}
	return e
}

// leader waits until one of the servers leads and returns it.
func (c *cluster) leader() (uint64, *rig) {
	c.t.Helper()
	var id uint64
	c.eventually("a leader", func() bool {
		for i, r := range c.rigs {
			if s := r.Status(); s.Role == Leader && s.Serving {
				id = i
				return true
			}
		}
		return false
	})
	return id, c.rigs[id]
}

func (c *cluster) follower() (uint64, *rig) {
	c.t.Helper()
	lead, _ := c.leader()
	for id, r := range c.rigs {
		if id != lead {
			r.awaitServed()
			return id, r
		}
	}
	c.t.Fatal("no follower")
	return 0, nil
}

func (c *cluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	err := wait.For(2*patience, what, func() (bool, error) { return ok(), nil })
	if err != nil {
		for id, r := range c.rigs {
			c.t.Logf("server %d: %+v\n%q", id, r.Status(), r.dump())
		}
		c.t.Fatal(err)
	}
}

// awaitLevel waits until all servers are at least at the given behaviour level.
func (c *cluster) awaitLevel(least uint32) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("level %d", least), func() bool {
		for _, r := range c.rigs {
			if now, _ := r.Level(); now < least {
				return false
			}
		}
		return true
	})
}

// sure repeats a command until it is applied. After the command is lost, it re-attaches the
// session, like a client that reconnects.
func (c *cluster) sure(r *rig, s *session.Session, cmd func(session.Session) command.Command) outcome {
	c.t.Helper()
	return c.sureWithin(r, s, 2*patience, cmd)
}

func (c *cluster) sureWithin(r *rig, s *session.Session, limit time.Duration, cmd func(session.Session) command.Command) outcome {
	c.t.Helper()
	deadline := time.After(limit)
	for {
		lost := r.lostCount() // before the command, which may be lost at once
		ch := r.send(cmd(*s))
		for waiting := true; waiting; {
			select {
			case o := <-ch:
				return o
			case <-time.After(10 * time.Millisecond):
				waiting = r.lostCount() == lost
			case <-deadline:
				c.t.Fatal("a command was not applied")
			}
		}
		if o, ok := r.tryReattach(*s); ok {
			s.Gen = o.attached.Gen
		}
	}
}

func (r *rig) lostCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lost)
}

func (r *rig) tryReattach(s session.Session) (outcome, bool) {
	lost := r.lostCount()
	ch := r.send(command.Command{Kind: command.KindAttach, Session: s.ID, Timeout: s.Timeout, Password: s.Password})
	for r.lostCount() == lost {
		select {
		case o := <-ch:
			return o, true
		case <-time.After(10 * time.Millisecond):
		}
	}
	return outcome{}, false
}

// surelyAttached creates a session, like a client that retries until it has one.
func (c *cluster) surelyAttached(r *rig, timeout time.Duration) session.Session {
	c.t.Helper()
	for range 100 {
		if o, ok := r.tryReattach(session.Session{Timeout: int32(timeout.Milliseconds()), Password: [16]byte{1, 2, 3}}); ok {
			return o.attached
		}
	}
	c.t.Fatal("no session in a hundred tries")
	return session.Session{}
}

// settled waits until all servers have the same state.
func (c *cluster) settled() {
	c.t.Helper()
	c.eventually("the same state on all servers", func() bool {
		zxids := map[int64]bool{}
		for _, r := range c.rigs {
			zxids[r.zxid()] = true
		}
		if len(zxids) > 1 {
			return false // without the work of a dump
		}
		if testing.Short() && c.sameDigest() {
			return true // without the work of a dump
		}
		first := ""
		for _, r := range c.rigs {
			if d := r.dump(); first == "" {
				first = d
			} else if d != first {
				return false
			}
		}
		return true
	})
}

// sameDigest reports whether the trees of all servers have the same digest, and their tables the
// same sessions.
func (c *cluster) sameDigest() bool {
	type state struct {
		digest   uint64
		sessions string
	}
	states := map[state]bool{}
	for _, r := range c.rigs {
		r.Tree().RLock()
		states[state{r.Tree().FullDigest(), string(r.Sessions().AppendTo(nil))}] = true
		r.Tree().RUnlock()
	}
	return len(states) == 1
}

// clusterOf returns an ensemble of voters with the given ids.
func clusterOf(t *testing.T, ids ...uint64) *cluster {
	c := newCluster(t, 0)
	for _, id := range ids {
		c.list = append(c.list, memberAt(id))
	}
	return c
}

// locate returns a server in Raft's configuration.
func (r *rig) locate(server uint64) (raft.ServerID, raft.ServerAddress) {
	for _, s := range r.replica.Raft().GetConfiguration().Configuration().Servers {
		if membership.ServerOf(s.ID) == server {
			return s.ID, s.Address
		}
	}
	r.t.Fatalf("Raft's configuration lacks server %d", server)
	return "", ""
}
