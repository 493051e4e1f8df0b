package server

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/zkgo/zkgo/internal/machine"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/storage"
	"github.com/zkgo/zkgo/tree"
)

// Errors of Start and Dial.
var (
	// ErrClosed is the error of Dial on a closed server.
	ErrClosed = errors.New("server: closed")
	// ErrZooKeeperData reports a data directory with data of ZooKeeper but not of zkgo: a
	// server started on it would show an empty tree.
	ErrZooKeeperData = errors.New("the directory contains data of ZooKeeper but not of zkgo")
	// ErrDataInUse reports that another server has the data directory open.
	ErrDataInUse = storage.ErrInUse
)

// checkDataDir refuses a ZooKeeper directory that has not been imported.
func checkDataDir(c *Config) error {
	if c.Memory {
		return nil
	}
	for _, dir := range []string{c.DataDir, c.Log.Dir} {
		if _, err := c.Env.FS.ReadDir(dir); c.NoAutocreate && err != nil {
			return fmt.Errorf("%s cannot be used, and is not created because of datadir.autocreate=false: %w; is its volume mounted?", dir, err)
		}
	}
	if ours, err := raftlog.HasState(c.Env.FS, c.Log.Dir, c.DataDir); ours || err != nil {
		return err
	}
	for _, dir := range []string{c.DataDir, c.Log.Dir} {
		old := filepath.Join(dir, "version-2")
		entries, err := c.Env.FS.ReadDir(old)
		if err != nil || len(entries) == 0 {
			continue
		}
		logs := ""
		if c.Log.Dir != c.DataDir {
			logs = " --from-log-dir " + c.Log.Dir
		}
		return fmt.Errorf("%s: %w; to use this data, stop ZooKeeper and run: zkgo import --from %s%s, with the same configuration; "+
			"in an ensemble, run it on one server only, and start the others without these files", old, ErrZooKeeperData, c.DataDir, logs)
	}
	return nil
}

// CheckDirectories reports why this process couldn't use the directories of a configuration:
// a directory is a file, can't be written or created, or is missing although it must exist
// (datadir.autocreate=false); or the audit log can't be written. It creates nothing and
// doesn't read the files in the directories.
func (c Config) CheckDirectories() error {
	c = c.withDefaults()
	if c.Memory {
		return nil
	}
	errs := []error{machine.CheckDirectory("dataDir", c.DataDir, c.NoAutocreate)}
	if c.Log.Dir != c.DataDir {
		errs = append(errs, machine.CheckDirectory("dataLogDir", c.Log.Dir, c.NoAutocreate))
	}
	if a := c.Audit; a != nil && a.Sink == nil && a.Path != "" {
		errs = append(errs, machine.CheckFile("audit.file", a.Path))
	}
	return errors.Join(errs...)
}

// Offline returns the configuration with which functions of package raftfsm read or
// change the state of this server while it is stopped: Survey, Recover, Rejoin, Load and
// Seed.
func (c Config) Offline() (raftfsm.Config, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return raftfsm.Config{}, fmt.Errorf("configuration: %w", err)
	}
	return raftfsm.Config{
		ID: c.Quorum.ID, Members: c.Quorum.Members, Memory: c.Memory, DataDir: c.DataDir, FS: c.Env.FS, Log: c.Log,
		Policy: c.policy(), Now: c.Env.Now, Logger: c.Logger,
	}, nil
}

// Restore makes an earlier state the one that the server of cfg begins a new ensemble with,
// or continues with as a standalone server; see raftfsm.Config.Restore. Its directories must
// not contain a state of zkgo or ZooKeeper. The caller must not use t and s afterwards.
func (cfg Config) Restore(t *tree.Tree, s *session.Table, minEpoch uint32) (raftfsm.Recovery, error) {
	offline, err := cfg.Offline()
	if err != nil {
		return raftfsm.Recovery{}, err
	}
	cfg = cfg.withDefaults()
	if err := checkDataDir(&cfg); err != nil {
		return raftfsm.Recovery{}, err
	}
	return offline.Restore(t, s, minEpoch)
}

// CheckEmpty returns an error if the directories of a configuration contain a state of zkgo
// or ZooKeeper. It changes nothing.
func (cfg Config) CheckEmpty() error {
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
