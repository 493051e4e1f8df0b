package server

import (
	"fmt"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Survey reads the state in the directories of a stopped server and returns how far it
// goes, to choose among the survivors of a lost quorum.
func Survey(cfg Config) (raftfsm.Position, error) {
	cfg = cfg.withDefaults()
	return raftfsm.Survey(cfg.onDisk())
}

// Recover turns the state in the directories of a stopped server into the start of a
// new ensemble with the members of cfg; see raftfsm.Recover.
func Recover(cfg Config, minEpoch uint32) (raftfsm.Recovery, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return raftfsm.Recovery{}, fmt.Errorf("configuration: %w", err)
	}
	return raftfsm.Recover(cfg.onDisk(), minEpoch)
}

// Rejoin moves the state of a stopped server aside, so that the server joins the
// ensemble with the given id anew. It returns where the state is now.
func Rejoin(cfg Config, ensemble string) (aside []string, err error) {
	cfg = cfg.withDefaults()
	return raftfsm.Rejoin(cfg.onDisk(), ensemble)
}

// onDisk returns the configuration needed to read a server's state while the server is
// stopped.
func (c *Config) onDisk() raftfsm.Config {
	return raftfsm.Config{
		ID: c.Quorum.ID, Members: c.Quorum.Members, Memory: c.Memory, FS: c.Env.FS, LogDir: c.Log.Dir, SnapDir: c.DataDir, Store: raftlog.Kind(c.Log.Store), Bolt: c.Log.Bolt,
		SnapRetain: c.Log.SnapRetain, Policy: c.policy(), Now: c.Env.Now, Logger: c.Logger,
	}
}

// Restore makes an earlier state the one that the server of cfg begins a new ensemble
// with, or continues with as a standalone server; see raftfsm.Restore. Its directories
// must hold no state of zkgo or ZooKeeper. The caller must not use t and s afterwards.
func Restore(cfg Config, t *tree.Tree, s *session.Table, minEpoch uint32) (raftfsm.Recovery, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return raftfsm.Recovery{}, fmt.Errorf("configuration: %w", err)
	}
	if err := checkDataDir(&cfg); err != nil {
		return raftfsm.Recovery{}, err
	}
	return raftfsm.Restore(cfg.onDisk(), t, s, minEpoch)
}

// CheckEmpty returns an error if the directories of a configuration hold a state of
// zkgo or ZooKeeper. It changes nothing.
func CheckEmpty(cfg Config) error {
	cfg = cfg.withDefaults()
	fsys := cfg.Env.FS
	if fsys == nil {
		fsys = vfs.OS{}
	}
	cfg.Env.FS = fsys
	found, err := raftlog.HasState(fsys, cfg.Log.Dir, cfg.DataDir)
	switch {
	case err != nil:
		return err
	case found:
		return fmt.Errorf("%s: %w", raftfsm.DirNames(cfg.Log.Dir, cfg.DataDir), raftfsm.ErrHasState)
	}
	return checkDataDir(&cfg)
}
