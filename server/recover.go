package server

import (
	"fmt"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Survey reads the state in the directories of a server that does not run: how
// far it goes, for the choice among the survivors of a lost quorum.
func Survey(cfg Config) (raftfsm.Position, error) {
	cfg = cfg.withDefaults()
	return raftfsm.Survey(cfg.onDisk())
}

// Recover makes what is in the directories of a server that does not run the
// beginning of a new ensemble with the members of cfg; see raftfsm.Recover.
func Recover(cfg Config, minEpoch uint32) (raftfsm.Recovery, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return raftfsm.Recovery{}, fmt.Errorf("configuration: %w", err)
	}
	return raftfsm.Recover(cfg.onDisk(), minEpoch)
}

// Rejoin sets the state of a server that does not run aside, so that it joins
// the ensemble with the given id anew. It returns where the state is then.
func Rejoin(cfg Config, ensemble string) (aside []string, err error) {
	cfg = cfg.withDefaults()
	return raftfsm.Rejoin(cfg.onDisk(), ensemble)
}

// onDisk is what has to be known of a server whose state is looked at while
// nobody serves it.
func (c *Config) onDisk() raftfsm.Config {
	return raftfsm.Config{
		ID: c.ID, Members: c.Members, Memory: c.Memory, FS: c.FS, LogDir: c.LogDir, SnapDir: c.DataDir, Store: c.Store,
		SnapRetain: c.SnapRetain, Policy: c.policy(), Now: c.Now, Logger: c.Logger,
	}
}

// Restore makes a state of the past the one with which the server of cfg begins a
// new ensemble, or goes on alone; see raftfsm.Restore. Its directories must not
// hold a state, of zkgo or of ZooKeeper. t and s are used up.
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

// CheckEmpty refuses a configuration whose directories hold a state, of zkgo or
// of ZooKeeper. Nothing is made or changed.
func CheckEmpty(cfg Config) error {
	cfg = cfg.withDefaults()
	fsys := cfg.FS
	if fsys == nil {
		fsys = vfs.OS{}
	}
	cfg.FS = fsys
	found, err := raftlog.HasState(fsys, cfg.LogDir, cfg.DataDir)
	switch {
	case err != nil:
		return err
	case found:
		return fmt.Errorf("%s: %w", raftfsm.DirNames(cfg.LogDir, cfg.DataDir), raftfsm.ErrHasState)
	}
	return checkDataDir(&cfg)
}
