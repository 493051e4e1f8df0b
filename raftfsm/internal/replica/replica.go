package replica

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
)

// Replica is a server's copy of the state.
type Replica struct {
	Machine  *apply.Machine
	Identity datadir.Identity // set by Open, unless it will come from the ensemble
	Counters Counters

	cfg          Config
	log          *slog.Logger
	stores       Stores
	transport    raft.Transport
	running      atomic.Pointer[raft.Raft] // see Raft
	reloading    sync.Mutex                // see Reload
	opening      time.Duration             // duration of Open
	lastSnapshot atomic.Pointer[lastSnapshot]
}

// New returns a replica that has not touched the disk yet. It completes env, the
// machine's interface to the rest of the server.
func New(cfg Config, env apply.Environment) *Replica {
	r := &Replica{cfg: cfg, log: cfg.Logger}
	env.Newest, env.Fleeting, env.Log = cfg.Level, r.fleeting(), cfg.Logger
	env.Numbers, env.Written, env.Evidence = &r.Counters.Counters, r.noteSnapshot, r.keepEvidence
	r.Machine = apply.New(env, cfg.SnapCount, cfg.SnapBytes)
	return r
}

// fleeting reports whether no server will ever read this one's snapshots and log.
func (r *Replica) fleeting() bool { return r.cfg.Memory && r.cfg.Server.Standalone }

// Raft returns the current Raft instance: nil until a member has found its ensemble, and a
// new one after a snapshot was installed.
func (r *Replica) Raft() *raft.Raft { return r.running.Load() }

// Stores returns the stores after Open.
func (r *Replica) Stores() Stores { return r.stores }

// Open opens the stores, finds out which server they belong to, and loads the newest
// snapshot. If it fails, the caller closes the stores.
func (r *Replica) Open() error {
	begin := time.Now()
	defer func() { r.opening = time.Since(begin) }()
	if !r.cfg.Memory {
		if err := r.cfg.Dirs.Open(r.log); err != nil {
			return err
		}
	}
	if err := r.openStores(); err != nil {
		return err
	}
	if err := r.loadIdentity(); err != nil {
		return err
	}
	if err := r.restoreNewest(); err != nil {
		return err
	}
	own := r.Identity.ClusterID()
	if c := r.Machine.Cluster; c != (command.ClusterID{}) && c != own {
		return fmt.Errorf("the snapshot in %s belongs to cluster %x, %s to %s", r.cfg.Dirs.Snap, c, r.cfg.Dirs.Log, r.Identity.Cluster)
	}
	r.Machine.Cluster = own
	return nil
}

// loadIdentity determines which server's state this is.
func (r *Replica) loadIdentity() (err error) {
	switch {
	case !r.cfg.Memory:
		r.Identity, err = r.cfg.Dirs.Identify(r.cfg.Server, r.stores, r.log)
	case r.cfg.Server.Standalone:
		r.Identity = datadir.NewIdentity(r.cfg.Server.ID)
	}
	return err
}

// Close closes the stores. Calling it again is harmless.
func (r *Replica) Close() error {
	if r.stores == nil {
		return nil
	}
	return r.stores.Close()
}
