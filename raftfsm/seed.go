package raftfsm

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// seedIndex and seedTerm are what the snapshot of a seed stands at: before
// anything that a log can hold.
const (
	seedIndex = 1
	seedTerm  = 1
)

// Seed writes tree and sessions into the empty directories of cfg, as the state
// that a server standing alone starts with: an import from elsewhere or the
// restoring of a backup. It is the beginning of a new history, which no server
// of an older one takes for its own. The tree's zxid has to be above everything
// that clients may have seen.
func Seed(cfg Config, t *tree.Tree, s *session.Table) (err error) {
	if cfg.Handler == nil {
		cfg.Handler = noHandler{}
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return err
	}
	if cfg.Memory || !cfg.standalone() {
		return errors.New("only a server that stands alone on a disk can be seeded")
	}
	n := newNode(cfg)
	n.machine.tree, n.machine.sessions = t, s
	if err := n.openStores(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.closeStores()) }()
	has, err := raft.HasExistingState(n.stores.Logs(), n.stores.Stable(), n.stores.Snapshots())
	if err != nil {
		return err
	}
	if has {
		return fmt.Errorf("%s and %s hold a state already", cfg.LogDir, cfg.SnapDir)
	}
	if err := n.loadIdentity(has); err != nil {
		return err
	}
	n.machine.level = n.cfg.newest
	for row := range s.All {
		n.machine.rows ^= rowDigest(row)
	}
	only := raft.Server{Suffrage: raft.Voter, ID: n.identity.RaftID, Address: standaloneAddr}
	return n.writeFirst(raft.Configuration{Servers: []raft.Server{only}})
}

// writeFirst writes the state of the machine as the snapshot with which a
// history begins, into stores that hold nothing.
func (n *Node) writeFirst(conf raft.Configuration) error {
	m := n.machine
	m.cluster, m.index = n.identity.clusterID(), seedIndex
	image, err := m.Snapshot()
	if err != nil {
		return err
	}
	defer image.Release()
	_, transport := raft.NewInmemTransport(standaloneAddr)
	sink, err := n.stores.Snapshots().Create(raft.SnapshotVersionMax, seedIndex, seedTerm, conf, seedIndex, transport)
	if err != nil {
		return err
	}
	return image.Persist(sink)
}

// noHandler is the Handler of a Node that serves nobody.
type noHandler struct{}

func (noHandler) Applied(*Applied)         {}
func (noHandler) BatchDone()               {}
func (noHandler) Lost(error)               {}
func (noHandler) Jumped()                  {}
func (noHandler) Live(dst []int64) []int64 { return dst }
func (noHandler) StateChanged(Status)      {}
