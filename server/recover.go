package server

import (
	"fmt"

	"github.com/zkgo/zkgo/raftfsm"
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
