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
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
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
	orDefault(&c.newest, command.Level)
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
		c.open = openRaftLog
	}
	if c.Handler == nil {
		return c, fmt.Errorf("a Handler is needed")
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
