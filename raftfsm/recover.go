package raftfsm

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
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
type Position struct {
	LogDir   string
	Server   uint64
	Cluster  string // id of the ensemble, hexadecimal
	Term     uint64 // of the newest entry in the log
	Index    uint64 // of the newest entry in the log
	Zxid     int64  // after all entries are applied
	Znodes   int
	Sessions int
	Voters   []uint64 // the servers with a vote, by the newest entry that lists them
}

// Compare compares two servers of an ensemble as Raft does. The server with the larger
// position holds everything acknowledged that the other one holds.
func (p *Position) Compare(o *Position) int {
	return cmp.Or(cmp.Compare(p.Term, o.Term), cmp.Compare(p.Index, o.Index))
}

// Recovery is the result of a recovery.
type Recovery struct {
	Before  Position
	Cluster string   // id of the new ensemble, hexadecimal
	Zxid    int64    // the first zxid of the new ensemble
	Aside   []string // directories that hold the old state now
}

// ErrNoState reports directories that hold no zkgo state.
var ErrNoState = errors.New("there is no state of zkgo here")

// Survey reads the directories of a stopped server. With a cfg.ID of 0, it accepts the
// directories of any server.
func Survey(cfg Config) (Position, error) {
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
	self, err := newcomer(cfg)
	if err != nil {
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
	t := &transplant{fs: n.cfg.FS, logDir: cfg.LogDir, snapDir: cfg.SnapDir, reached: reached}
	err = errors.Join(n.closeStores(), t.discard())
	n.stores = nil
	if err != nil {
		return r, err
	}
	if err := n.renew(minEpoch); err != nil {
		return r, err
	}
	if err := t.step("prepare"); err != nil {
		return r, err
	}
	if err := n.prepare(t, self); err != nil {
		return r, err
	}
	r.Cluster, r.Zxid = n.identity.Cluster, n.tree.LastZxid()
	r.Aside, err = t.begin(n.cfg.Now())
	return r, err
}

// Rejoin moves the state of a stopped server aside, so that the server joins the
// ensemble with the given id as a new member. It refuses a server that already belongs
// to that ensemble.
func Rejoin(cfg Config, cluster string) (aside []string, err error) {
	if id, err := hex.DecodeString(cluster); err != nil || len(id) != command.ClusterIDSize {
		return nil, fmt.Errorf("%q is not the id of an ensemble: want %d hexadecimal digits", cluster, 2*command.ClusterIDSize)
	}
	cfg.Handler = noHandler{}
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	if err := hasState(&cfg); err != nil {
		return nil, err
	}
	lock, err := raftlog.Lock(cfg.FS, cfg.LogDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	t := &transplant{fs: cfg.FS, logDir: cfg.LogDir, snapDir: cfg.SnapDir}
	if _, err := t.resume(lock); err != nil {
		return nil, err
	}
	id, _, err := readIdentity(cfg.FS, cfg.LogDir)
	switch {
	case err != nil:
		return nil, err
	case id.Cluster == cluster:
		return nil, fmt.Errorf("%s belongs to the ensemble %s already: start the server", cfg.LogDir, cluster)
	}
	if err := t.discard(); err != nil {
		return nil, err
	}
	return t.begin(cfg.Now())
}

// survivor is a state that no server serves.
type survivor struct {
	node     *Node
	position Position
}

// hasState refuses empty directories, because opening them would create files in them.
func hasState(cfg *Config) error {
	found, err := raftlog.HasState(cfg.FS, cfg.LogDir, cfg.SnapDir)
	if err != nil || found {
		return err
	}
	for _, name := range []string{identityFile, journalFile} {
		if _, err := cfg.FS.Stat(filepath.Join(cfg.LogDir, name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", cfg.LogDir, ErrNoState)
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
	if err := hasState(&cfg); err != nil {
		return nil, err
	}
	if _, err := (&transplant{fs: cfg.FS, logDir: cfg.LogDir, snapDir: cfg.SnapDir}).resume(nil); err != nil {
		return nil, err
	}
	id, found, err := readIdentity(cfg.FS, cfg.LogDir)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("%s: it does not say whose state it is: %w", cfg.LogDir, ErrNoState)
	case cfg.standalone():
		cfg.ID = id.Server
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	n := newNode(cfg)
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
	go func() { done <- s.replayLog() }() // an unreadable entry blocks it forever
	select {
	case err := <-done:
		return err
	case err := <-n.stores.Failed():
		return err
	}
}

func (s *survivor) replayLog() error {
	n, p := s.node, &s.position
	*p = Position{LogDir: n.cfg.LogDir, Server: n.identity.Server, Cluster: n.identity.Cluster}
	conf, err := s.newestSnapshot()
	if err != nil {
		return err
	}
	logs := n.stores.Logs()
	first, err := logs.FirstIndex()
	if err != nil {
		return err
	}
	last, err := logs.LastIndex()
	if err != nil {
		return err
	}
	for i := max(first, p.Index+1, 1); i <= last; i++ {
		var l raft.Log
		if err := logs.GetLog(i, &l); err != nil {
			return err
		}
		p.Term, p.Index = l.Term, l.Index
		switch l.Type {
		case raft.LogCommand:
			if err := n.machine.ApplyEntry(l.Index, l.Data); err != nil {
				return fmt.Errorf("%s: log entry %d: %w", n.cfg.LogDir, l.Index, err)
			}
		case raft.LogConfiguration:
			conf = raft.DecodeConfiguration(l.Data)
		}
	}
	for _, server := range conf.Servers {
		if server.Suffrage == raft.Voter {
			p.Voters = append(p.Voters, membership.ServerOf(server.ID))
		}
	}
	p.Zxid, p.Znodes, p.Sessions = n.tree.LastZxid(), n.tree.NodeCount(), n.sessions.Len()
	return nil
}

// newestSnapshot starts the position at the snapshot that openState restored.
func (s *survivor) newestSnapshot() (conf raft.Configuration, err error) {
	list, err := s.node.stores.Snapshots().List()
	if err != nil || len(list) == 0 {
		return conf, err
	}
	s.position.Term, s.position.Index = list[0].Term, list[0].Index
	return list[0].Configuration, nil
}

// renew turns the state into one in which a new history can begin.
func (n *Node) renew(minEpoch uint32) error {
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

// newcomer returns this server as the first voter of a new ensemble, without its
// ServerID.
func newcomer(cfg Config) (raft.Server, error) {
	self := raft.Server{Suffrage: raft.Voter, Address: standaloneAddr}
	if cfg.standalone() {
		return self, nil
	}
	for _, m := range cfg.Members {
		if m.ID == cfg.ID {
			self.Address = raft.ServerAddress(firstDialable(m.ID, m.QuorumAddr))
			return self, nil
		}
	}
	return self, fmt.Errorf("server %d is not on the list of servers in its configuration", cfg.ID)
}

// prepare writes the renewed state to the directories that the transplant installs.
func (n *Node) prepare(t *transplant, self raft.Server) (err error) {
	n.cfg.LogDir, n.cfg.SnapDir = filepath.Join(t.logDir, preparedDir), filepath.Join(t.snapDir, preparedDir)
	if err := n.openStores(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.closeStores()) }()
	if n.cfg.standalone() {
		n.identity = newIdentity(standaloneServer)
	} else {
		// Use a disk number that no formation plan contains, so that no server takes
		// this one for a founder.
		seats := &seatStore{fs: n.cfg.FS, dir: n.cfg.LogDir}
		if err := seats.save(seat{Disk: newDisk(), Taken: true}); err != nil {
			return err
		}
		n.identity = newIdentity(n.cfg.ID)
		n.identity.RaftID = membership.JoinerID(n.cfg.ID, seats.seat.Disk)
	}
	if err := n.identity.write(n.cfg.FS, n.cfg.LogDir); err != nil {
		return err
	}
	self.ID = n.identity.RaftID
	return n.writeFirst(raft.Configuration{Servers: []raft.Server{self}})
}

// standaloneServer is the id of a standalone server.
const standaloneServer = 1

// takeLock takes over the directory's lock from the stores.
func takeLock(s stores) io.Closer {
	if lock := s.TakeLock(); lock != nil {
		return lock
	}
	return io.NopCloser(nil)
}
