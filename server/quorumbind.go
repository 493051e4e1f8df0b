package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

const (
	// defaultBindTries is how often the quorum port is tried (electionPortBindRetry).
	defaultBindTries = 3
	// bindPause is the pause between two attempts, ZooKeeper's.
	bindPause = time.Second
	// bindNews is how many attempts pass between two lines of the log.
	bindNews = 60
)

// patientNetwork listens again when that fails. At the start of a machine or a pod
// the own name may not resolve yet, the address not be assigned, and the port still
// belong to the process before.
type patientNetwork struct {
	quorum.Network
	ctx   context.Context // ends the waiting
	tries int             // below 0: for ever
	pause time.Duration
	log   *slog.Logger
}

// Listen implements quorum.Network.
func (n patientNetwork) Listen(addr string) (net.Listener, error) {
	for try := 1; ; try++ {
		l, err := n.Network.Listen(addr)
		if err == nil || try == n.tries {
			return l, err
		}
		if try%bindNews == 1 {
			n.log.Warn("waiting for the quorum port", "address", addr, "error", err, "attempt", try, "next", n.pause,
				"attempts", max(n.tries, 0)) // 0: for ever, as electionPortBindRetry has it
		}
		timer := time.NewTimer(n.pause)
		select {
		case <-timer.C:
		case <-n.ctx.Done():
			timer.Stop()
			return nil, errors.Join(err, n.ctx.Err())
		}
	}
}

// Unwrap returns the network itself.
func (n patientNetwork) Unwrap() quorum.Network { return n.Network }
