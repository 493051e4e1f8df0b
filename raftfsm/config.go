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
	if !c.Memory && c.DataDir == "" {
		return c, fmt.Errorf("a data directory is needed, or Memory")
	}
	orDefault(&c.Log.Store, string(raftlog.WAL))
	orDefault(&c.level, command.Level)
	orDefault(&c.TickTime, defaults.TickTime)
	orDefault(&c.SyncLimit, defaults.SyncLimit)
	c.Log.SetDefaults(c.DataDir)
	orDefault(&c.Containers.Interval, defaults.ContainerInterval)
	orDefault(&c.Containers.MaxPerMin, defaults.ContainerMaxPerMin)
	for name, value := range map[string]int64{
		"TickTime": int64(c.TickTime), "Log.SnapCount": int64(c.Log.SnapCount), "Log.SnapBytes": c.Log.SnapBytes,
		"Containers.Interval": int64(c.Containers.Interval), "Containers.MaxPerMin": int64(c.Containers.MaxPerMin),
	} {
		if value < 0 {
			return c, fmt.Errorf("%s is %d: must not be negative", name, value)
		}
	}
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Peers.Network == nil {
		c.Peers.Network = new(quorum.TCP)
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

// standalone reports whether the configuration describes a standalone server.
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
func (c *Config) dirs() datadir.Dirs { return datadir.Dirs{FS: c.FS, Log: c.Log.Dir, Snap: c.DataDir} }

// replica returns the configuration of the server's replica. c has every field set.
func (c *Config) replica() replica.Config {
	alone := c.standalone()
	r := replica.Config{
		Server: datadir.Server{ID: c.ID, Members: c.Members, Standalone: alone},
		Level:  c.level, Policy: c.Policy,
		Memory: c.Memory, Dirs: c.dirs(), Store: raftlog.Kind(c.Log.Store), Bolt: c.Log.Bolt, SegmentBytes: c.Log.Segment,
		SnapCount: c.Log.SnapCount, SnapBytes: c.Log.SnapBytes, SnapRetain: c.Log.SnapRetain, SnapTrailing: c.Log.SnapTrailing,
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
