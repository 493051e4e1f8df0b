package replica

import (
	"errors"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// seedIndex and seedTerm are the position of a seed's snapshot, before every entry that a
// log can have.
const (
	seedIndex = 1
	seedTerm  = 1
)

// Seed writes a state into the empty directories of cfg, as the beginning of a new history.
// reached is called before each step, and an error ends the work there; nil outside of tests.
func Seed(cfg Config, t *tree.Tree, s *session.Table, reached func(step string) error) (done Recovery, err error) {
	return begin(cfg, t, s, reached, func(*Replica) error { return nil })
}

// Restore is Seed for an older state, after which clients have seen later changes: in a
// later epoch, at least minEpoch, and without sessions. The ids of new sessions start at
// the number from which ZooKeeper would start now.
func Restore(cfg Config, t *tree.Tree, s *session.Table, minEpoch uint32) (Recovery, error) {
	return begin(cfg, t, s, nil, func(r *Replica) error {
		s.Skip(uint64(cfg.Now().UnixMilli()) << 16)
		return r.renew(minEpoch)
	})
}

// begin makes a state, after a change, the content of the empty directories of cfg.
func begin(cfg Config, t *tree.Tree, s *session.Table, reached func(step string) error, change func(*Replica) error) (done Recovery, err error) {
	if cfg.Memory {
		return done, errors.New("only a server with a disk can be seeded")
	}
	if _, err := cfg.Server.Self(); err != nil {
		return done, err
	}
	lock, err := cfg.Dirs.TakeEmpty()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	swap := datadir.Swap{Dirs: cfg.Dirs, Reached: reached}
	if err := swap.Discard(); err != nil {
		return done, err
	}
	r := detached(cfg)
	r.Machine.Plant(t, s, cfg.Level)
	if err := change(r); err != nil {
		return done, err
	}
	if err := r.prepare(swap); err != nil {
		return done, err
	}
	done.Cluster, done.Zxid = r.Identity.Cluster, t.LastZxid()
	_, err = swap.Begin(cfg.Now()) // there was nothing to move aside
	return done, err
}

// writeFirst writes the machine's state as the first snapshot of a history, into empty
// stores.
func (r *Replica) writeFirst(conf raft.Configuration) error {
	m := r.Machine
	m.Cluster, m.Index = r.Identity.ClusterID(), seedIndex
	image, err := m.Snapshot()
	if err != nil {
		return err
	}
	defer image.Release()
	_, transport := raft.NewInmemTransport(datadir.StandaloneAddr)
	sink, err := r.stores.Snapshots().Create(raft.SnapshotVersionMax, seedIndex, seedTerm, conf, seedIndex, transport)
	if err != nil {
		return err
	}
	return image.Persist(sink)
}
