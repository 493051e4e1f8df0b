package replica

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// When a majority of the voters is lost permanently, only the survivors' data is left.
// Recover makes one survivor the beginning of a new ensemble:
//
//   - Everything in its log counts, even entries that it doesn't know to be committed: a
//     client may have received a reply for them.
//   - The new ensemble has a new id, so no server of one ensemble can participate in the
//     other.
//   - The epoch rises above everything that clients may have seen: a server refuses a
//     client that has seen a later zxid than its own.
//   - All sessions expire. Otherwise a client could continue with caches of znodes that the
//     new ensemble has never had, and no event would announce it.

// EpochGap is added to the epoch. The lost servers may have had elections that the
// survivor doesn't know about.
const EpochGap = 256

// Recovery is the result of a recovery.
type Recovery struct {
	Before  datadir.Position
	Cluster string   // id of the new ensemble, hexadecimal
	Zxid    int64    // the first zxid of the new ensemble
	Aside   []string // new directories of the old state
}

// Survey reads the directories of a stopped server. If cfg describes a standalone server, it
// accepts the directories of any server.
func Survey(cfg Config) (datadir.Position, error) {
	s, err := openSurvivor(cfg)
	if err != nil {
		return datadir.Position{}, err
	}
	return s.position, s.Close()
}

// Load returns the state in the directories of a stopped server. Like Survey, it reads the
// whole log.
func Load(cfg Config) (*tree.Tree, *session.Table, datadir.Position, error) {
	s, err := openSurvivor(cfg)
	if err != nil {
		return nil, nil, datadir.Position{}, err
	}
	return s.Machine.Tree, s.Machine.Sessions, s.position, s.Close()
}

// Recover makes the state in the directories of cfg, which belong to a stopped server, the
// beginning of a new ensemble with the members of cfg. reached is called before each step, and
// an error ends the work there; nil outside of tests.
func Recover(cfg Config, minEpoch uint32, reached func(step string) error) (done Recovery, err error) {
	if _, err := cfg.Server.Self(); err != nil {
		return done, err
	}
	s, err := openSurvivor(cfg)
	if err != nil {
		return done, err
	}
	lock := takeLock(s.stores)
	defer func() { err = errors.Join(err, lock.Close()) }()
	done.Before = s.position
	swap := datadir.Swap{Dirs: cfg.Dirs, Reached: reached}
	err = errors.Join(s.Close(), swap.Discard())
	s.stores = nil
	if err != nil {
		return done, err
	}
	if err := s.renew(minEpoch); err != nil {
		return done, err
	}
	if err := swap.Step("prepare"); err != nil {
		return done, err
	}
	if err := s.prepare(swap); err != nil {
		return done, err
	}
	done.Cluster, done.Zxid = s.Identity.Cluster, s.Machine.Tree.LastZxid()
	done.Aside, err = swap.Begin(cfg.Now())
	return done, err
}

// survivor is a state that no server serves.
type survivor struct {
	*Replica
	position datadir.Position
}

// openSurvivor opens the directories and applies the whole log.
func openSurvivor(cfg Config) (s *survivor, err error) {
	if cfg.Memory {
		return nil, errors.New("only a server with a disk can be read")
	}
	id, err := cfg.Dirs.Owner()
	if err != nil {
		return nil, err
	}
	if cfg.Server.Standalone {
		cfg.Server.ID = id.Server
	}
	s = &survivor{Replica: detached(cfg)}
	if err := s.Open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.replay(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// detached returns a replica that belongs to no running server.
func detached(cfg Config) *Replica {
	cfg.Storing = nil
	return New(cfg, apply.Detached())
}

// replay applies the log entries after the newest snapshot.
func (s *survivor) replay() error {
	done := make(chan error, 1)
	go func() { // an unreadable entry blocks it forever
		m := s.Machine
		p, err := s.cfg.Dirs.Replay(s.Identity, s.stores, m.ApplyEntry)
		if err == nil {
			p.Zxid, p.Znodes, p.Sessions = m.Tree.LastZxid(), m.Tree.NodeCount(), m.Sessions.Len()
			s.position = p
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case err := <-s.stores.Failed():
		return err
	}
}

// renew prepares the state for a new history.
func (r *Replica) renew(minEpoch uint32) error {
	m := r.Machine
	m.Tree.Lock()
	defer m.Tree.Unlock()
	epoch := max(m.Tree.LastZxid()>>32+EpochGap, int64(minEpoch))
	if epoch > apply.MaxEpoch {
		return fmt.Errorf("the epoch would be %d: there is none above %d", epoch, int64(apply.MaxEpoch))
	}
	m.BeginAnew(epoch, tree.Txn{Time: r.cfg.Now().UnixMilli(), Policy: r.cfg.Policy})
	// Without a text, the first leader contributes the list of its configuration file.
	// A text that a reconfig has set has a version, which must rise.
	old := m.Config
	m.Config = nil
	if was, err := membership.ParseState(old); err == nil && was.Version > 0 && !r.cfg.Server.Standalone {
		now := membership.New(r.cfg.Server.Members)
		now.Version = uint64(m.Tree.LastZxid())
		m.Config = now.Text()
	}
	return m.Tree.Check()
}

// prepare writes the renewed state to the directories that swap installs.
func (r *Replica) prepare(swap datadir.Swap) (err error) {
	to := swap.Prepared()
	r.cfg.Dirs = to
	if err := r.openStores(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Identity, err = to.Begin(r.cfg.Server); err != nil {
		return err
	}
	self, err := r.cfg.Server.Self()
	if err != nil {
		return err
	}
	self.ID = r.Identity.RaftID
	return r.writeFirst(raft.Configuration{Servers: []raft.Server{self}})
}

// takeLock moves the directory's lock from the stores to the caller.
func takeLock(s Stores) io.Closer {
	if lock := s.TakeLock(); lock != nil {
		return lock
	}
	return io.NopCloser(nil)
}
