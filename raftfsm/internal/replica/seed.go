package raftfsm

import (
	"errors"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// seedIndex and seedTerm are the position of a seed's snapshot, before anything that a
// log can hold.
const (
	seedIndex = 1
	seedTerm  = 1
)

// Seed writes tree and sessions into the empty directories of cfg, as the state that a
// server starts with, e.g. for an import. It begins a new history, which no server of
// an older history accepts as its own. In an ensemble, only one server may be seeded.
// It has the only vote until other servers with empty directories have joined. The
// tree's zxid must be above everything that clients may have seen. A stop at any moment
// leaves the directories empty, or the next process that opens them finishes the work.
func (cfg Config) Seed(t *tree.Tree, s *session.Table) error {
	_, err := seed(cfg, t, s, nil, nil)
	return err
}

// Restore is Seed for an older state whose later changes clients have seen. The epoch
// rises far above that of the state, and to at least minEpoch. All sessions end, as in
// a recovery from a lost quorum. The ids of new sessions start where ZooKeeper's would
// start at that time. Some backups don't tell which ids were in use, and a client whose
// session is gone must not find another client's session under its id.
func Restore(cfg Config, t *tree.Tree, s *session.Table, minEpoch uint32) (Recovery, error) {
	return seed(cfg, t, s, func(n *replica) error {
		s.Skip(uint64(n.cfg.Now().UnixMilli()) << 16)
		return n.renew(minEpoch)
	}, nil)
}

func seed(cfg Config, t *tree.Tree, s *session.Table, renew func(*replica) error, reached func(string) error) (r Recovery, err error) {
	if cfg.Handler == nil {
		cfg.Handler = noHandler{}
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return r, err
	}
	if cfg.Memory {
		return r, errors.New("only a server with a disk can be seeded")
	}
	if _, err := cfg.server().Self(); err != nil {
		return r, err
	}
	lock, err := cfg.dirs().TakeEmpty()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	swap := datadir.Swap{Dirs: cfg.dirs(), Reached: reached}
	if err := swap.Discard(); err != nil {
		return r, err
	}
	n := newNode(cfg).replica
	if err := n.plant(t, s, renew); err != nil {
		return r, err
	}
	if err := n.prepare(swap); err != nil {
		return r, err
	}
	r.Cluster, r.Zxid = n.identity.Cluster, t.LastZxid()
	_, err = swap.Begin(n.cfg.Now()) // there was nothing to move aside
	return r, err
}

// DirNames names two directories in a message, or one if they are the same.
func DirNames(a, b string) string { return datadir.Dirs{Log: a, Snap: b}.String() }

// plant makes tree and sessions the state of the machine.
func (n *replica) plant(t *tree.Tree, s *session.Table, renew func(*replica) error) error {
	n.tree, n.sessions = t, s
	n.machine.Plant(t, s, n.cfg.newest)
	n.machine.Fleeting = false
	if renew == nil {
		return nil
	}
	return renew(n)
}

// writeFirst writes the machine's state as the first snapshot of a history, into empty
// stores.
func (n *replica) writeFirst(conf raft.Configuration) error {
	m := n.machine
	m.Cluster, m.Index = n.identity.ClusterID(), seedIndex
	image, err := m.Snapshot()
	if err != nil {
		return err
	}
	defer image.Release()
	_, transport := raft.NewInmemTransport(datadir.StandaloneAddr)
	sink, err := n.stores.Snapshots().Create(raft.SnapshotVersionMax, seedIndex, seedTerm, conf, seedIndex, transport)
	if err != nil {
		return err
	}
	return image.Persist(sink)
}

// noHandler is the Handler of a Node that has no clients.
type noHandler struct{}

func (noHandler) Applied(*Applied)         {}
func (noHandler) BatchDone()               {}
func (noHandler) Lost(error)               {}
func (noHandler) Jumped()                  {}
func (noHandler) Live(dst []int64) []int64 { return dst }
func (noHandler) StateChanged(Status)      {}
