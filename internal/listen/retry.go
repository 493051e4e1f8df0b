package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

const (
	// Pause is the pause between two attempts, as in ZooKeeper.
	Pause = time.Second
	// news is how many attempts pass between two log lines.
	news = 60
)

// Retry is how often to try again to listen.
type Retry struct {
	Tries int           // below 0: unlimited
	Pause time.Duration // between two attempts
	Log   *slog.Logger
}

// listen calls open until it succeeds, until an error is final, or until the tries of r are
// used up. ctx ends the wait. what and args are for the log.
func (r Retry) listen(ctx context.Context, open func() (net.Listener, error), final func(err error, try int) bool, what string, args ...any) (net.Listener, error) {
	for try := 1; ; try++ {
		l, err := open()
		if err == nil || try == r.Tries || final(err, try) {
			return l, err
		}
		if try%news == 1 {
			r.Log.Warn(what, append(args, "error", err, "attempt", try, "next", r.Pause,
				"attempts", max(r.Tries, 0))...) // 0: unlimited, as in electionPortBindRetry
		}
		timer := time.NewTimer(r.Pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// AwaitName calls open for the address of p. It tries again while the host name doesn't
// resolve: a pod's own name resolves only some time after the pod has started.
func (r Retry) AwaitName(ctx context.Context, p Port, open func(addr string) (net.Listener, error)) (net.Listener, error) {
	final := func(err error, _ int) bool { return !unresolved(err) }
	return r.listen(ctx, func() (net.Listener, error) { return open(p.Addr) }, final,
		"waiting for the host name of a port to resolve", "setting", p.Setting, "address", p.Addr)
}

// unresolved reports whether the host name in an address didn't resolve. The name of a
// port, which Go looks up as tcp/name, doesn't resolve later.
func unresolved(err error) bool {
	var lookup *net.DNSError
	return errors.As(err, &lookup) && !strings.HasPrefix(lookup.Name, "tcp/")
}

// PatientNetwork tries again when Listen fails during the start of the server. While a
// machine or a pod starts, its own name may not resolve yet, the address may not be
// assigned, and the previous process may still use the port. Later the server listens again
// only if a reconfig changes its address, and then it must not wait.
type PatientNetwork struct {
	quorum.Network
	Starting context.Context // the start of the server; its end ends the wait
	Retry    Retry
}

// Listen implements quorum.Network.
func (n PatientNetwork) Listen(addr string) (net.Listener, error) {
	final := func(_ error, try int) bool { return try == 1 && n.Starting.Err() != nil }
	return n.Retry.listen(n.Starting, func() (net.Listener, error) { return n.Network.Listen(addr) }, final,
		"waiting for the quorum port", "address", addr)
}

// Unwrap returns the wrapped network.
func (n PatientNetwork) Unwrap() quorum.Network { return n.Network }
