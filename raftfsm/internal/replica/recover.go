package raftfsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// When a majority of the voters is lost for good, the survivors hold all that is left.
// Recover makes one of them the beginning of a new ensemble:
//
//   - Everything in its log counts, even entries that it doesn't know to be committed: a
//     client may have received a reply for them.
//   - The new ensemble has a new id, so no server of one ensemble can take part in the
//     other.
//   - The epoch rises above everything that clients may have seen: a server refuses a
//     client that has seen a later zxid than its own.
//   - All sessions expire. Otherwise a client could continue with caches of znodes that the
//     new ensemble has never had, and no event would tell it.

// epochGap is how much the epoch rises. The lost servers may have held elections that
// the survivor does not know of.
const epochGap = 256

// Position describes how far the state in a server's directories reaches.
type Position = datadir.Position

// Recovery is the result of a recovery.
type Recovery struct {
	Before  Position
	Cluster string   // id of the new ensemble, hexadecimal
	Zxid    int64    // the first zxid of the new ensemble
	Aside   []string // directories that hold the old state now
}

// Survey reads the directories of a stopped server. With a cfg.ID of 0, it accepts the
// directories of any server.
func (cfg Config) Survey() (Position, error) {
	s, err := openSurvivor(cfg)
	if err != nil {
		return Position{}, err
	}
	return s.position, s.node.closeStores()
}

// Load returns the state in the directories of a stopped server, e.g. for an export.
// Like Survey, it reads the whole log.
func Load(cfg Config) (*tree.Tree, *session.Table, Position, error) {
	s, err := openSurvivor(cfg)
	if err != nil {
		return nil, nil, Position{}, err
	}
	return s.node.tree, s.node.sessions, s.position, s.node.closeStores()
}

// Recover makes the state in the directories of cfg, which belong to a stopped server,
// the beginning of a new ensemble with the members of cfg. This server has the only
// vote in it until other servers join. The epoch will be at least minEpoch. A stop at
// any moment leaves the directories unchanged, or the next process that opens them
// finishes the recovery.
func Recover(cfg Config, minEpoch uint32) (Recovery, error) { return recoverState(cfg, minEpoch, nil) }

func recoverState(cfg Config, minEpoch uint32, reached func(string) error) (r Recovery, err error) {
	if _, err := cfg.server().Self(); err != nil {
		return r, err
	}
	s, err := openSurvivor(cfg)
	if err != nil {
		return r, err
	}
	n := s.node
	lock := takeLock(n.stores)
	defer func() { err = errors.Join(err, lock.Close()) }()
	r.Before = s.position
	swap := datadir.Swap{Dirs: n.cfg.dirs(), Reached: reached}
	err = errors.Join(n.closeStores(), swap.Discard())
	n.stores = nil
	if err != nil {
		return r, err
	}
	if err := n.renew(minEpoch); err != nil {
		return r, err
	}
	if err := swap.Step("prepare"); err != nil {
		return r, err
	}
	if err := n.prepare(swap); err != nil {
		return r, err
	}
	r.Cluster, r.Zxid = n.identity.Cluster, n.tree.LastZxid()
	r.Aside, err = swap.Begin(n.cfg.Now())
	return r, err
}

// Rejoin moves the state of a stopped server aside, so that the server joins the
// ensemble with the given id as a new member. It refuses a server that already belongs
// to that ensemble.
func (cfg Config) Rejoin(cluster string) (aside []string, err error) {
	cfg.Handler = noHandler{}
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	return datadir.Swap{Dirs: cfg.dirs()}.Rejoin(cluster, cfg.Now())
}

// survivor is a state that no server serves.
type survivor struct {
	node     *replica
	position Position
}

// dirs returns the directories of the server.
func (c *Config) dirs() datadir.Dirs { return datadir.Dirs{FS: c.FS, Log: c.LogDir, Snap: c.SnapDir} }

// server returns the owner of the directories.
func (c *Config) server() datadir.Server {
	return datadir.Server{ID: c.ID, Members: c.Members, Standalone: c.standalone()}
}

// openSurvivor opens the directories and applies the whole log.
func openSurvivor(cfg Config) (s *survivor, err error) {
	if cfg.Memory || cfg.LogDir == "" || cfg.SnapDir == "" {
		return nil, errors.New("only what a server left on a disk can be read")
	}
	cfg.Handler = noHandler{}
	if cfg.FS == nil {
		cfg.FS = vfs.OS{}
	}
	id, err := cfg.dirs().Owner()
	if err != nil {
		return nil, err
	}
	if cfg.standalone() {
		cfg.ID = id.Server
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	n := newNode(cfg).replica
	n.machine.Post = func([]apply.Event) {}
	if err := n.openState(); err != nil {
		return nil, errors.Join(err, n.closeStores())
	}
	s = &survivor{node: n}
	if err := s.replay(); err != nil {
		return nil, errors.Join(err, n.closeStores())
	}
	return s, nil
}

// replay applies the log entries after the newest snapshot.
func (s *survivor) replay() error {
	n, done := s.node, make(chan error, 1)
	go func() { // an unreadable entry blocks it forever
		p, err := n.cfg.dirs().Replay(n.identity, n.stores, n.machine.ApplyEntry)
		if err == nil {
			p.Zxid, p.Znodes, p.Sessions = n.tree.LastZxid(), n.tree.NodeCount(), n.sessions.Len()
			s.position = p
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case err := <-n.stores.Failed():
		return err
	}
}

// renew turns the state into one in which a new history can begin.
func (n *replica) renew(minEpoch uint32) error {
	m := n.machine
	m.Tree.Lock()
	defer m.Tree.Unlock()
	epoch := max(m.Tree.LastZxid()>>32+epochGap, int64(minEpoch))
	if epoch > apply.MaxEpoch {
		return fmt.Errorf("the epoch would be %d: there is none above %d", epoch, int64(apply.MaxEpoch))
	}
	m.BeginAnew(epoch, tree.Txn{Time: n.cfg.Now().UnixMilli(), Policy: n.cfg.Policy})
	// Without a text, the first leader contributes the list of its configuration file.
	// A text that a reconfig has set has a version, which must rise.
	old := m.Config
	m.Config = nil
	if was, err := membership.ParseState(old); err == nil && was.Version > 0 && !n.cfg.standalone() {
		now := membership.New(n.cfg.Members)
		now.Version = uint64(m.Tree.LastZxid())
		m.Config = now.Text()
	}
	return m.Tree.Check()
}

// prepare writes the renewed state to the directories that swap installs.
func (n *replica) prepare(swap datadir.Swap) (err error) {
	to := swap.Prepared()
	n.cfg.LogDir, n.cfg.SnapDir = to.Log, to.Snap
	if err := n.openStores(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.closeStores()) }()
	if n.identity, err = to.Begin(n.cfg.server()); err != nil {
		return err
	}
	self, err := n.cfg.server().Self()
	if err != nil {
		return err
	}
	self.ID = n.identity.RaftID
	return n.writeFirst(raft.Configuration{Servers: []raft.Server{self}})
}

// takeLock takes over the directory's lock from the stores.
func takeLock(s stores) io.Closer {
	if lock := s.TakeLock(); lock != nil {
		return lock
	}
	return io.NopCloser(nil)
}
