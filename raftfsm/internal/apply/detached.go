package apply

import (
	"io"
	"log/slog"
	"math/rand/v2"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// Detached returns the environment of a machine that belongs to no running server, e.g.
// to read the files of a stopped server. No command is proposed there, and no client
// waits.
func Detached() Environment {
	return Environment{
		Newest: command.Level, Handler: noClients{}, Local: propose.NewLocalRuns(0, rand.Uint64(), propose.NewBacklog()),
		Log: slog.New(slog.DiscardHandler), Numbers: new(Counters),
		Own: func(uint64) bool { return false }, BatchApplied: func(uint64, uint64) {}, Applied: func(uint64) {}, Post: func([]Event) {},
		Written: func(int64, int64) {}, Settled: func(uint64, Restored) {}, Fail: func(error) {},
		Evidence:   func(func(io.Writer) error) string { return "its state is not kept: it has no directory" },
		Configured: func(uint64, raft.Configuration) {},
	}
}

// noClients is the Handler of a state without clients.
type noClients struct{}

func (noClients) Applied(*command.Applied) {}
func (noClients) BatchDone()               {}
func (noClients) Jumped()                  {}
