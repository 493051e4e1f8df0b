package takeover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/words"
	"github.com/zkgo/zkgo/raftfsm"
)

// ObserverID is the default of our number in the ensemble. It only matters that no server of
// the ensemble has it.
const ObserverID = mirrored.Sessions

// Config configures a Mirror.
type Config struct {
	Learner learner.Config // Touched is ours
	Old     *mirror.Old    // the ensemble to follow
	// Memory is the part of the configuration that the data directory keeps for the next start.
	Memory Memory
	Serve  bool // clients are served before the cutover
	// ReadsOnly serves only clients that accept read-only sessions before the cutover.
	ReadsOnly bool
	// Progress receives the progress of a snapshot while it arrives, and then nil. By default, we
	// log the progress. It isn't called concurrently.
	Progress func(*Arrival)
	Dial     words.Dial // to the ensemble's client ports
	Logger   *slog.Logger
	Wall     func() time.Time // default time.Now
}

// Mirror follows an ensemble whenever its server leads. Its methods are safe for concurrent
// use.
type Mirror struct {
	cfg Config

	mu      sync.Mutex
	to      Target        // while this server leads
	conn    *learner.Conn // while it is connected
	feed    *feed
	last    *mirror.Last
	gone    context.Context // ends with the connection
	old     *mirror.Old     // the ensemble, as the cutover under way knows it
	cutting chan struct{}   // closed when the cutover under way ends; nil: none is
	source  mirrored.Source // of the newest connection
	problem string          // why there is no connection
	arrival *Arrival        // of a snapshot; nil: none is arriving
}

// New returns a Mirror.
func New(cfg Config) *Mirror {
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	return &Mirror{cfg: cfg, source: cfg.Memory.Source}
}

// Pauses between two attempts to connect.
const (
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second
)

// Serves implements server.Mirror.
func (m *Mirror) Serves() bool { return m.cfg.Serve }

// ReadsOnly implements server.Mirror.
func (m *Mirror) ReadsOnly() bool { return m.cfg.ReadsOnly && !m.cfg.Serve }

// Lead follows the ensemble until ctx ends, with the leadership of this server.
func (m *Mirror) Lead(ctx context.Context, to raftfsm.Mirroring) { m.lead(ctx, to) }

func (m *Mirror) lead(ctx context.Context, to Target) {
	m.set(func() { m.to, m.problem = to, "" })
	defer m.set(func() { m.to = nil })
	pause := retryMin
	for ctx.Err() == nil {
		state, _, _ := to.State()
		if state.Phase > mirrored.Following {
			return
		}
		if state.Broken != "" {
			m.set(func() { m.problem = state.Broken })
			m.cfg.Logger.Error("no longer following the ensemble", "err", state.Broken)
			return
		}
		began := time.Now()
		err := m.once(ctx, to)
		if ctx.Err() != nil {
			return
		}
		m.set(func() { m.problem = err.Error() })
		if errors.Is(err, learner.ErrTrunc) || errors.Is(err, errReadOnly) {
			m.cfg.Logger.Error("no longer following the ensemble", "err", err)
			return
		}
		if m.waitForCutover(ctx) {
			continue
		}
		m.cfg.Logger.Warn("not connected to the ensemble", "err", err)
		if pause = min(2*pause, retryMax); time.Since(began) > retryMax {
			pause = retryMin
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// waitForCutover waits while a cutover is under way: it has proved the newest transaction, and
// no other may follow. It reports whether there was one.
func (m *Mirror) waitForCutover(ctx context.Context) bool {
	m.mu.Lock()
	cutting := m.cutting
	m.mu.Unlock()
	if cutting == nil {
		return false
	}
	select {
	case <-cutting:
	case <-ctx.Done():
	}
	return true
}

// errReadOnly ends a mirror that would pass on writes to zkgo.
var errReadOnly = errors.New("takeover: the source is a zkgo server, which accepts no writes from a standby: start it with --serve=read-only, or without --serve")

// once follows the ensemble over one connection and returns why that ended.
func (m *Mirror) once(ctx context.Context, to Target) error {
	// Requests that we passed on over an earlier connection have no answer. The servers know that
	// after this mark, and pass on no more requests until we say that we are in sync.
	if err := await(ctx, to, func(done func(error)) error {
		return to.Mark(&mirrored.Mark{Time: m.cfg.Wall().UnixMilli()}, done)
	}); err != nil {
		return err
	}
	to.Forwards()
	state, _, zxid := to.State()
	if state.Phase != mirrored.Following {
		zxid = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	var conn *learner.Conn
	cfg := m.cfg.Learner
	cfg.Touched = m.touched(to)
	cfg.Limits.Progress = func(bytes int64, znodes int) {
		m.arrived(bytes, znodes, func() {
			work.Go(func() { m.expect(ctx, conn.Addr(), conn.Epoch()) })
		})
	}
	conn, err := learner.Dial(ctx, cfg, zxid)
	if err != nil {
		if text := advice(err, &cfg); text != "" {
			err = fmt.Errorf("%w\n%s", err, text)
		}
		return err
	}
	if conn.Zkgo() && m.cfg.Serve {
		return errors.Join(errReadOnly, conn.Close())
	}
	f := newFeed(to, conn.Addr(), zxid, m.cfg.Wall)
	f.source = sourceOf(conn)
	f.complete, f.begun = m.complete, m.settled
	if zxid == 0 {
		f.beginEmpty(cfg.Policy)
	}
	defer m.settled()
	last := &mirror.Last{Receiver: f, SyncProves: conn.Zkgo()}
	gone, ended := context.WithCancel(context.Background())
	m.set(func() {
		m.conn, m.feed, m.last, m.gone, m.problem = conn, f, last, gone, ""
		m.source = f.source
	})
	defer m.set(func() { m.conn, m.feed, m.last = nil, nil, nil })
	defer ended()
	m.cfg.Logger.Info("connected to the ensemble", "leader", conn.Addr(), "epoch", conn.Epoch(), "our zxid", fmt.Sprintf("0x%x", zxid))
	defer m.cfg.Logger.Info("disconnected from the ensemble", "leader", conn.Addr())

	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for _, task := range []func() error{func() error { return f.run(ctx) }, func() error { return f.pass(ctx, conn) }} {
		work.Go(func() { cancel(task()) })
	}
	err = conn.Follow(zxid, last)
	cancel(err) // unless a task was the first to fail
	work.Wait()
	_ = conn.Close() // it may be closed already
	return context.Cause(ctx)
}

// sourceOf returns the kind of server at the remote end of a connection.
func sourceOf(conn *learner.Conn) mirrored.Source {
	switch {
	case conn.Mirror():
		return mirrored.Mirror
	case conn.Zkgo():
		return mirrored.Zkgo
	}
	return mirrored.ZooKeeper
}

// await proposes a command and waits for its outcome.
func await(ctx context.Context, to Target, propose func(done func(error)) error) error {
	done, lost := make(chan error, 1), to.Lost()
	if err := propose(func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-lost:
		return errors.New("takeover: this server no longer leads")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Mirror) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// Status is a server's knowledge of a mirror.
type Status struct {
	Phase       string   `json:"phase"`              // none, following, open, fenced or done
	Broken      string   `json:"broken,omitempty"`   // why no more transactions are applied
	Zxid        int64    `json:"zxid"`               // newest transaction applied on this server
	Leads       bool     `json:"leads"`              // this server leads the zkgo servers
	Leader      string   `json:"leader,omitempty"`   // the ensemble's, host:port of its quorum port
	InSync      bool     `json:"inSync"`             // our leader is connected to the ensemble's, and has had all of its state
	Proposed    int64    `json:"proposed"`           // newest zxid that the ensemble's leader has announced
	Lag         int64    `json:"lag"`                // transactions announced and not applied; −1: of another epoch
	LagMillis   int64    `json:"lagMillis"`          // since the ensemble's leader was heard
	Compared    int64    `json:"digestsCompared"`    // digests that have matched on this server since its start
	Snapshot    *Arrival `json:"snapshot,omitempty"` // that is arriving here
	Problem     string   `json:"problem,omitempty"`
	TakenOverAt int64    `json:"takenOverAt,omitempty"` // the ensemble's newest zxid at the cutover
	Znodes      int      `json:"znodes"`
	Sessions    int      `json:"sessions"`
	Ephemerals  int      `json:"ephemerals"`
}

// StatusOf returns the status of the mirror on the server that n is the Node of. It is
// meaningful on every server: the others read the leader's messages from the log.
func (m *Mirror) StatusOf(n *raftfsm.Node) Status {
	state, mark, zxid := n.Mirroring().State()
	s := Status{
		Phase: state.Phase.String(), Broken: state.Broken, Zxid: zxid, TakenOverAt: state.Zxid, Compared: n.Mirroring().Compared(),
		Leader: mark.Leader, InSync: mark.InSync, Proposed: mark.Proposed,
	}
	role := n.Status()
	s.Leads = role.Serving && (role.Role == raftfsm.Leader || role.Role == raftfsm.Standalone)
	at := time.UnixMilli(mark.Time)
	m.mu.Lock()
	s.Problem = m.problem
	if m.arrival != nil {
		a := *m.arrival
		s.Snapshot = &a
	}
	if f := m.feed; f != nil {
		own := f.mark()
		s.Leader, s.InSync, s.Proposed = own.Leader, own.InSync, own.Proposed
		f.mu.Lock()
		at = f.heard
		f.mu.Unlock()
	} else if s.Leads {
		s.InSync = false
	}
	m.mu.Unlock()
	if state.Phase == mirrored.Following {
		s.Lag = lag(zxid, s.Proposed)
		s.InSync = s.InSync && s.Broken == ""
		if !at.IsZero() {
			s.LagMillis = max(0, m.cfg.Wall().Sub(at).Milliseconds())
		}
	}
	t := n.Tree()
	t.RLock()
	s.Znodes, s.Ephemerals, s.Sessions = t.NodeCount()-1, t.EphemeralCount(), n.Sessions().Len()
	t.RUnlock()
	return s
}

// lag returns how many transactions lie between two zxids, or −1 if they belong to different
// epochs.
func lag(have, proposed int64) int64 {
	switch {
	case proposed <= have:
		return 0
	case proposed>>32 != have>>32:
		return -1
	}
	return proposed - have
}
