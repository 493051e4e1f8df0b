package quorum

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// refusalPause keeps a peer that retries forever from filling the log.
	refusalPause = 30 * time.Second
	// maxRefusalLines limits the refusals that are logged in refusalPause.
	maxRefusalLines = 64
)

// refusals decides which refusals are logged: each kind once in refusalPause, and at most
// maxRefusalLines kinds. The caller controls parts of the kind, so without the second
// limit a stranger could fill the log.
type refusals struct {
	mu    sync.Mutex
	told  map[string]time.Time // last time logged, by text
	since time.Time            // the beginning of the current period
	lines int                  // logged in that period
	left  int                  // not logged in that period
}

// mayLog reports whether to log a refusal now, and returns the number of refusals in the
// previous period that weren't logged.
func (r *refusals) mayLog(key string, now time.Time) (log bool, unlogged int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= refusalPause {
		unlogged, r.left = r.left, 0
		r.since, r.lines = now, 0
	}
	if now.Sub(r.told[key]) < refusalPause {
		return false, unlogged
	}
	if r.lines >= maxRefusalLines {
		r.left++
		return false, unlogged
	}
	if r.told == nil || len(r.told) > maxHandshakes {
		r.told = make(map[string]time.Time)
	}
	r.told[key] = now
	r.lines++
	return true, unlogged
}

// refusal translates a TLS error into its meaning for the operator, and logs it. It
// returns any other error unchanged.
func (h *Hub) refusal(err error, who RefusedError) error {
	var known *RefusedError
	if h.tls == nil || errors.As(err, &known) {
		return err
	}
	who.Code, who.Cause = h.tls.explain(err)
	if who.Code == Accepted {
		return err
	}
	who.Ours = h.Identity()
	h.complain(&who)
	return &who
}

// rejoining reports whether one side means the same server on another disk. This is
// normal for a moment when a server joins with an empty disk, because the leader still
// uses the id from its list. If two servers run with the same id, the leader admits only
// one and logs the conflict.
func (e *RefusedError) rejoining() bool {
	there := e.Theirs.ServerID
	if e.Incoming {
		there = e.Ours.ServerID
	}
	meant, _, _ := strings.Cut(e.To, ".")
	is, _, _ := strings.Cut(there, ".")
	return e.Code == WrongTarget && e.To != "" && e.To != there && meant == is
}

// complain logs a refusal that an operator should know about, at most once per
// refusalPause.
func (h *Hub) complain(err *RefusedError) {
	if err.Code == NotReady || err.rejoining() {
		return
	}
	// Log one line for all kinds of stream, and ignore the remote port, which differs for
	// each accepted connection.
	addr := err.Addr
	if host, _, serr := net.SplitHostPort(addr); serr == nil && err.Incoming {
		addr = host
	}
	cause := err.Cause
	if c := (*certificateError)(nil); errors.As(cause, &c) {
		cause = errors.New(describe(c.cert)) // the reason may contain the time
	}
	key := fmt.Sprint(err.Incoming, err.Code, addr, err.To, err.Theirs.ServerID, err.Theirs.Ensemble, err.Theirs.List, cause)
	now := time.Now()
	log, unlogged := h.refusals.mayLog(key, now)
	if unlogged > 0 {
		h.log.Warn("refused more calls that are not logged individually", "count", unlogged, "within", refusalPause)
	}
	if log {
		h.log.Warn("refused to talk to another server", "err", err.Error())
	}
}
