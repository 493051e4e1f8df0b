package raftfsm

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
)

// withDefaults returns c with every optional field set, or an error that names the
// invalid field.
func (c Config) withDefaults() (Config, error) {
	if c.ID > membership.MaxServer {
		return c, fmt.Errorf("server id %d: must be 0 to %d", c.ID, membership.MaxServer)
	}
	if err := membership.Check(c.Members); err != nil {
		return c, err
	}
	if !c.Memory && (c.LogDir == "" || c.SnapDir == "") {
		return c, fmt.Errorf("a directory for the log and one for snapshots are needed, or Memory")
	}
	orDefault(&c.Store, string(raftlog.WAL))
	orDefault(&c.level, command.Level)
	orDefault(&c.TickTime, defaults.TickTime)
	orDefault(&c.InitLimit, defaults.InitLimit)
	orDefault(&c.SyncLimit, defaults.SyncLimit)
	orDefault(&c.SnapCount, defaults.SnapCount)
	orDefault(&c.SnapBytes, defaults.SnapBytes)
	orDefault(&c.SnapRetain, defaults.SnapRetain)
	orDefault(&c.ContainerInterval, defaults.ContainerInterval)
	orDefault(&c.ContainerMaxPerMin, defaults.ContainerMaxPerMin)
	if c.TickTime < 0 || c.SnapCount < 0 || c.SnapBytes < 0 || c.ContainerInterval < 0 || c.ContainerMaxPerMin < 0 {
		return c, fmt.Errorf("negative value in the configuration: %+v", c)
	}
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Network == nil {
		c.Network = new(quorum.TCP)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Wall == nil {
		c.Wall = c.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.open == nil {
		c.open = replica.OpenStores
	}
	return c, nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// standalone reports whether the configuration is that of a standalone server.
func (c Config) standalone() bool {
	voters, observers := 0, 0
	for _, m := range c.Members {
		if m.Observer {
			observers++
		} else {
			voters++
		}
	}
	return !c.Ensemble && voters < 2 && observers == 0
}

// dirs returns the directories of the server.
func (c *Config) dirs() datadir.Dirs { return datadir.Dirs{FS: c.FS, Log: c.LogDir, Snap: c.SnapDir} }

// replica returns the configuration of the server's replica. c has every field set.
func (c *Config) replica() replica.Config {
	alone := c.standalone()
	r := replica.Config{
		Server: datadir.Server{ID: c.ID, Members: c.Members, Standalone: alone},
		Level:  c.level, Policy: c.Policy,
		Memory: c.Memory, Dirs: c.dirs(), Store: raftlog.Kind(c.Store), Bolt: c.Bolt, SegmentBytes: c.LogSegment,
		SnapCount: c.SnapCount, SnapBytes: c.SnapBytes, SnapRetain: c.SnapRetain, SnapTrailing: c.SnapTrailing,
		ElectionTimeout: ensemble.ElectionTimeout, Lease: ensemble.ElectionTimeout,
		Now: c.Now, Wall: c.Wall, Logger: c.Logger, Open: c.open,
	}
	if !alone {
		// See ensemble.Timing: Raft's own timers start no election.
		r.ElectionTimeout, r.Lease = ensemble.Never, c.timing().Lease
	}
	return r
}

// timing returns the timeouts between the servers of the ensemble.
func (c *Config) timing() ensemble.Timing {
	return (&ensemble.Config{TickTime: c.TickTime, SyncLimit: c.SyncLimit}).Timing()
}
