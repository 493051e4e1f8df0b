package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Snapshotter provides the operations behind the commands snapshot and restore.
type Snapshotter interface {
	// Export writes a ZooKeeper snapshot file of the state. The state includes all
	// writes acknowledged before the call.
	Export(ctx context.Context) (*Export, error)
	// Keep makes the server write its own snapshot to its data directory.
	Keep() (zxid, bytes int64, err error)
	// Restore replaces the state of the whole ensemble with the snapshot in r, if
	// possible. It returns the zxid of the new state.
	Restore(ctx context.Context, r io.Reader) (zxid int64, err error)
}

// Options configures the handler.
type Options struct {
	Profiles bool // serve profiles of the process at /debug/pprof/
	// NoSnapshot and NoRestore disable the commands snapshot and restore.
	NoSnapshot, NoRestore bool
	// TooEarly is called for every command that Interval rejects. Nil: not called.
	TooEarly func(command string)
	// Refused is called for every refused command, with one of a few reasons. It isn't
	// called if Authorize returned Unknown, because Authorize itself reports why. Nil: not
	// called.
	Refused func(r *http.Request, command, reason string)
	// Started is called for every snapshot and restore that isn't refused, before it runs.
	// Nil: not called.
	Started func(r *http.Request)
	// Interval is the minimum time between two snapshots, RestoreInterval between two
	// restores. 0: no limit.
	Interval, RestoreInterval time.Duration
	Now                       func() time.Time // default time.Now
}

// Export is a ZooKeeper snapshot file. The caller must close it.
type Export struct {
	Zxid    int64
	Bytes   int64
	Content io.ReadCloser
}

// ErrUnavailable means that the operation is currently impossible.
var ErrUnavailable = errors.New("not possible now")

// Headers of the reply to snapshot.
const (
	headerZxid = "last_zxid"
	headerSize = "snapshot_size"
)

// snapshots serves the commands snapshot and restore.
type snapshots struct {
	src                Snapshotter
	opts               Options
	guard              *guard
	snapshot, restores limiter
	exports            atomic.Int32 // snapshots being sent
}

// maxExports limits the snapshots sent concurrently. Each is a temporary file.
const maxExports = 2

// limiter allows one request per interval.
type limiter struct {
	mu   sync.Mutex
	last time.Time
}

func (l *limiter) allow(now time.Time, interval time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < interval {
		return false
	}
	l.last = now
	return true
}

// started prepares the connection of a command that isn't refused. Until then we keep the
// server's deadlines, because any client may send a command that we refuse.
func (s *snapshots) started(w http.ResponseWriter, r *http.Request) {
	noDeadlines(w)
	if s.opts.Started != nil {
		s.opts.Started(r)
	}
}

// admit rejects a call that comes before the interval has passed.
func (s *snapshots) admit(w http.ResponseWriter, r *http.Request, l *limiter, interval time.Duration, name string) bool {
	now := time.Now
	if s.opts.Now != nil {
		now = s.opts.Now
	}
	if l.allow(now(), interval) {
		return true
	}
	if s.opts.TooEarly != nil {
		s.opts.TooEarly(name)
	}
	s.guard.refused(r, name, "rate limit exceeded")
	w.Header().Set("Retry-After", strconv.Itoa(int((interval+time.Second-1)/time.Second)))
	reply(w, http.StatusTooManyRequests, name, nil, fmt.Sprintf("only one %s every %v (admin.rateLimiterIntervalInMS)", name, interval))
	return false
}

func (s *snapshots) serveSnapshot(w http.ResponseWriter, r *http.Request) {
	const name = "snapshot"
	switch {
	case !s.guard.admits(w, r):
		return
	case s.opts.NoSnapshot:
		s.guard.refused(r, name, "it is disabled")
		reply(w, http.StatusServiceUnavailable, name, nil, "Snapshot command is disabled (admin.snapshot.enabled)")
		return
	case !s.admit(w, r, &s.snapshot, s.opts.Interval, name):
		return
	}
	if q := r.URL.Query(); q.Has("streaming") && !strings.EqualFold(q.Get("streaming"), "true") {
		s.started(w, r)
		zxid, size, err := s.src.Keep()
		replySoon(w)
		if err != nil {
			reply(w, http.StatusInternalServerError, name, nil, err.Error())
			return
		}
		snapshotHeaders(w, zxid, size)
		reply(w, http.StatusOK, name, nil, "")
		return
	}
	if s.exports.Add(1) > maxExports {
		s.exports.Add(-1)
		s.guard.refused(r, name, "too many snapshots are being sent")
		w.Header().Set("Retry-After", "10")
		reply(w, http.StatusServiceUnavailable, name, nil, fmt.Sprintf("%d snapshots are already being sent, and each needs a file with the whole state: try again later", maxExports))
		return
	}
	defer s.exports.Add(-1)
	s.started(w, r)
	e, err := s.src.Export(r.Context())
	if err != nil {
		replySoon(w)
		reply(w, http.StatusInternalServerError, name, nil, err.Error())
		return
	}
	defer e.Content.Close()
	snapshotHeaders(w, e.Zxid, e.Bytes)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(e.Bytes, 10))
	if r.Method == http.MethodHead {
		return
	}
	// A truncated reply doesn't have the announced length.
	_, _ = io.Copy(&progressWriter{w: w, deadline: http.NewResponseController(w).SetWriteDeadline}, e.Content)
}

// snapshotHeaders sets ZooKeeper's headers. Their names aren't capitalized.
func snapshotHeaders(w http.ResponseWriter, zxid, size int64) {
	w.Header()[headerZxid] = []string{"0x" + strconv.FormatUint(uint64(zxid), 16)}
	w.Header()[headerSize] = []string{strconv.FormatInt(size, 10)}
}

func (s *snapshots) serveRestore(w http.ResponseWriter, r *http.Request) {
	const name = "restore"
	asked := r.Method == http.MethodGet || r.Method == http.MethodHead // ZooKeeper authenticates these methods, too
	switch {
	case (asked || r.Method == http.MethodPost) && !s.guard.admits(w, r):
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		reply(w, http.StatusMethodNotAllowed, name, nil, "restore requires a POST with the snapshot as the body")
		return
	case s.opts.NoRestore:
		s.guard.refused(r, name, "it is disabled")
		reply(w, http.StatusServiceUnavailable, name, nil, "Restore command is disabled (admin.restore.enabled)")
		return
	case !s.admit(w, r, &s.restores, s.opts.RestoreInterval, name):
		return
	}
	s.started(w, r)
	zxid, err := s.src.Restore(r.Context(), progressing(w, r))
	replySoon(w)
	switch {
	case errors.Is(err, ErrUnavailable):
		reply(w, http.StatusServiceUnavailable, name, nil, err.Error())
	case err != nil:
		reply(w, http.StatusInternalServerError, name, nil, err.Error())
	default:
		reply(w, http.StatusOK, name, object{{"last_zxid", zxid}}, "")
	}
}
