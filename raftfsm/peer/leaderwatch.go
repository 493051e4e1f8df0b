package peer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// recheck is the pause between the two looks at the leader's port.
	recheck = 20 * time.Millisecond
	// stagger keeps the followers from standing against each other: the next
	// one in the order of ids stands when those before it had time to win.
	stagger = 80 * time.Millisecond
	// lookTimeout is for a port that neither opens nor refuses, which says
	// nothing about the leader's process.
	lookTimeout = time.Second
)

// leaderWatch notices that the leader's process is gone. Its kernel says so:
// the leader's connections to us end and its port refuses new ones. Slowness
// is never evidence; it is what the heartbeat timeout is for.
type leaderWatch struct {
	mu     sync.Mutex
	busy   bool
	ctx    context.Context
	cancel context.CancelFunc
	closed bool
	wg     sync.WaitGroup
}

// begin returns a context for a look at the leader, nil when one is under way.
func (w *leaderWatch) begin() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.busy {
		return nil
	}
	if w.ctx == nil {
		w.ctx, w.cancel = context.WithCancel(context.Background())
	}
	w.busy = true
	w.wg.Add(1)
	return w.ctx
}

func (w *leaderWatch) end() {
	w.mu.Lock()
	w.busy = false
	w.mu.Unlock()
	w.wg.Done()
}

func (w *leaderWatch) stop() {
	w.mu.Lock()
	w.closed = true
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// Suspect says that a connection with a server ended. When that server leads
// this one and its port refuses connections, twice, this server stands for
// election without waiting for the heartbeats to time out.
func (t *Transport) Suspect(id raft.ServerID) {
	if t.cfg.View == nil || t.closed() {
		return
	}
	if v := t.cfg.View(); v.Leader != id || rank(v, t.id) < 0 {
		return
	}
	ctx := t.watch.begin()
	if ctx == nil {
		return
	}
	go func() {
		defer t.watch.end()
		t.inspect(ctx, id)
	}()
}

func (t *Transport) inspect(ctx context.Context, leader raft.ServerID) {
	v := t.cfg.View()
	if !t.gone(ctx, leader, v) || !pause(ctx, recheck) {
		return
	}
	if !pause(ctx, time.Duration(rank(v, t.id))*stagger) {
		return
	}
	if v = t.cfg.View(); v.Leader != "" && v.Leader != leader {
		return // another one was elected in the meantime
	}
	// No leader: somebody before us in the order stood and lost, to a longer
	// log perhaps.
	v.Leader = leader
	if rank(v, t.id) < 0 {
		return
	}
	if t.gone(ctx, leader, v) {
		t.Kick()
	}
}

// gone reports that the server's port refuses connections.
func (t *Transport) gone(ctx context.Context, id raft.ServerID, v View) bool {
	for _, s := range v.Config.Servers {
		if s.ID == id {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			conn, err := t.cfg.Hub.network.Dial(ctx, string(s.Address))
			if err != nil {
				return Refused(err)
			}
			_ = conn.Close()
			return false
		}
	}
	return false
}

// rank is the place of a voter among those that may follow the leader, the
// highest id first; -1 when it may not.
func rank(v View, id raft.ServerID) int {
	var ids []raft.ServerID
	for _, s := range v.Config.Servers {
		if s.Suffrage == raft.Voter && s.ID != v.Leader {
			ids = append(ids, s.ID)
		}
	}
	slices.SortFunc(ids, func(a, b raft.ServerID) int { return CompareIDs(b, a) })
	return slices.Index(ids, id)
}

// CompareIDs orders ServerIDs as the numbers they are made of: "9" before
// "10", "3" before "3.1".
func CompareIDs(a, b raft.ServerID) int {
	an, ak, _ := strings.Cut(string(a), ".")
	bn, bk, _ := strings.Cut(string(b), ".")
	if c := compareDigits(an, bn); c != 0 {
		return c
	}
	return compareDigits(ak, bk)
}

func compareDigits(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
