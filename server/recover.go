package server

import (
	"fmt"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Offline returns the configuration with which functions of package raftfsm read or
// change the state of this server while it is stopped: Survey, Recover, Rejoin, Load and
// Seed.
func (c Config) Offline() (raftfsm.Config, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return raftfsm.Config{}, fmt.Errorf("configuration: %w", err)
	}
	return raftfsm.Config{
		ID: c.Quorum.ID, Members: c.Quorum.Members, Memory: c.Memory, FS: c.Env.FS,
		LogDir: c.Log.Dir, SnapDir: c.DataDir, Store: raftlog.Kind(c.Log.Store), Bolt: c.Log.Bolt,
		SnapRetain: c.Log.SnapRetain, Policy: c.policy(), Now: c.Env.Now, Logger: c.Logger,
	}, nil
}

// Restore makes an earlier state the one that the server of cfg begins a new ensemble
// with, or continues with as a standalone server; see raftfsm.Restore. Its directories
// must hold no state of zkgo or ZooKeeper. The caller must not use t and s afterwards.
func Restore(cfg Config, t *tree.Tree, s *session.Table, minEpoch uint32) (raftfsm.Recovery, error) {
	offline, err := cfg.Offline()
	if err != nil {
		return raftfsm.Recovery{}, err
	}
	cfg = cfg.withDefaults()
	if err := checkDataDir(&cfg); err != nil {
		return raftfsm.Recovery{}, err
	}
	return raftfsm.Restore(offline, t, s, minEpoch)
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
