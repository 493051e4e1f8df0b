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
	// bindPause is the pause between two attempts, as in ZooKeeper.
	bindPause = time.Second
	// bindNews is how many attempts pass between two log lines.
	bindNews = 60
)

// patientNetwork tries again when Listen fails during the start of the server. While a
// machine or a pod starts, its own name may not resolve yet, the address may not be
// assigned, and the previous process may still hold the port. Later the server listens
// again only if a reconfig changes its address, and then it must not wait.
type patientNetwork struct {
	quorum.Network
	ctx   context.Context // the start of the server; its end ends the wait
	tries int             // below 0: unlimited
	pause time.Duration
	log   *slog.Logger
}

// Listen implements quorum.Network.
func (n patientNetwork) Listen(addr string) (net.Listener, error) {
	for try := 1; ; try++ {
		l, err := n.Network.Listen(addr)
		if err == nil || try == n.tries || try == 1 && n.ctx.Err() != nil {
			return l, err
		}
		if try%bindNews == 1 {
			n.log.Warn("waiting for the quorum port", "address", addr, "error", err, "attempt", try, "next", n.pause,
				"attempts", max(n.tries, 0)) // 0: unlimited, as in electionPortBindRetry
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

// Unwrap returns the wrapped network.
func (n patientNetwork) Unwrap() quorum.Network { return n.Network }
