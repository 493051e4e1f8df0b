package restore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

const (
	// pieceSize is the number of state bytes in one command. Two pieces fit into a
	// batch.
	pieceSize = 120 << 10
	// piecesAhead is the maximum number of pieces in flight. Clients' writes queue after
	// at most that many.
	piecesAhead = 8
	// BeginLimit limits the time that a restore waits for a leader.
	BeginLimit = 15 * time.Second
	// SettleLimit limits the time that a restore waits for its outcome, and settleRetry
	// is the pause before it asks again.
	SettleLimit = 30 * time.Second
	settleRetry = time.Second
)

// Errors of Restores.Replace.
var (
	// ErrUnknown reports that the state may have been replaced, or still be replaced later.
	ErrUnknown = apply.ErrRestoreUnknown
	// ErrLevel reports that not every server supports restores.
	ErrLevel = errors.New("not all servers of the ensemble are known to support a restore")
	// ErrBusy reports that this server is already running another restore.
	ErrBusy = errors.New("another restore is under way at this server")
	// ErrNoLeader reports that nothing was changed, because there is no leader.
	ErrNoLeader = errors.New("no leader: nothing was changed")
)

// ErrLost is the reason for giving up a restore in flight.
var ErrLost = errors.New("the connection to the leader was lost: nothing was changed, try again")

// Restores proposes the restores of one server, one at a time.
type Restores struct {
	Local    *propose.LocalRuns
	Wall     func() time.Time
	Level    func() uint32               // the behaviour level that the log has reached
	Lacking  func(level uint32) []string // the other servers that may not know a level, each with the reason
	Stopping <-chan struct{}             // closed when the server stops

	running sync.Mutex // held while a restore runs

	mu    sync.Mutex
	id    uint64
	ended chan apply.Restored // gets a value at the end of a restore that has started
}

// Settled records how a restore has ended. It does not block.
func (r *Restores) Settled(id uint64, o apply.Restored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil && r.id == id {
		r.ended <- o // its buffer has room for the only value
		r.ended = nil
	}
}

// expect prepares to receive the end of the restore with that id.
func (r *Restores) expect(id uint64) <-chan apply.Restored {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := make(chan apply.Restored, 1)
	r.id, r.ended = id, ch
	return ch
}

// Check returns the reason why Replace would be refused now, if it is known.
func (r *Restores) Check() error { return r.checkLevel(apply.RestoreLevel) }

func (r *Restores) checkLevel(level uint32) error {
	if r.Level() >= level {
		return nil
	}
	who := r.Lacking(level)
	if len(who) == 0 {
		who = []string{"all servers have just reported support, try again"}
	}
	return fmt.Errorf("%w: %s", ErrLevel, strings.Join(who, ", "))
}

// Replace replaces the state of the ensemble. It returns the zxid after this server has applied
// the new state. It consumes t and s, and ends the sessions in s. The error tells whether
// nothing was changed or whether that is unknown. If ctx ends before the last piece is in
// flight, nothing is changed.
func (r *Restores) Replace(ctx context.Context, t *tree.Tree, s *session.Table) (zxid int64, err error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	if !r.running.TryLock() {
		return 0, ErrBusy
	}
	defer r.running.Unlock()
	p := r.newReplacement(ctx, command.KindRestoreCommit)
	p.commit.Sessions = endAll(t, s, r.Wall())
	return p.run(t, nil)
}

// Follow replaces the state of the ensemble like Replace, by the state of an Apache ZooKeeper
// ensemble that the servers follow from then on. It keeps the zxid and the sessions.
func (r *Restores) Follow(ctx context.Context, t *tree.Tree, s *session.Table) error {
	if err := r.checkLevel(apply.MirrorLevel); err != nil {
		return err
	}
	if !r.running.TryLock() {
		return ErrBusy
	}
	defer r.running.Unlock()
	_, err := r.newReplacement(ctx, command.KindMirrorBegin).run(t, s)
	return err
}

func (r *Restores) newReplacement(ctx context.Context, last command.Kind) *replacement {
	p := &replacement{r: r, ctx: ctx, last: last, id: newID(), room: make(chan struct{}, piecesAhead)}
	p.lost, p.ended = r.Local.Losing(), r.expect(p.id)
	return p
}

// newID returns a random id for a restore.
func newID() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// endAll ends all sessions in a tree that is not in use. It returns the higher one of the
// highest counter in their ids and the counter that ZooKeeper would start with now.
func endAll(t *tree.Tree, s *session.Table, now time.Time) (counter uint64) {
	counter = uint64(now.UnixMilli()) << 16
	tx := tree.Txn{Time: now.UnixMilli()}
	for row := range s.All {
		counter = max(counter, session.Counter(row.ID))
		tx.Zxid, tx.Session = apply.NextZxid(t.LastZxid()), row.ID
		t.Apply(&tx, proto.OpCloseSession, nil)
	}
	return counter
}

// replacement proposes one restore.
type replacement struct {
	r   *Restores
	ctx context.Context
	id  uint64
	// last is the kind of the command that puts the state in force.
	last command.Kind

	lost  <-chan struct{}
	ended <-chan apply.Restored
	room  chan struct{} // contains one value for each piece in flight

	way    uint64
	commit apply.RestoreCommit
	piece  command.Kind // of the pieces that Write proposes
	buf    []byte       // the piece that is not full yet
	failed error        // the error that ended Write
}

// errEnded is the error that ends the writing when the machine has dropped the new
// state.
var errEnded = errors.New("ended")

// run proposes the tree, the sessions to keep (nil: none), and the command that puts both
// in force.
func (r *replacement) run(t *tree.Tree, s *session.Table) (int64, error) {
	if err := r.begin(); err != nil {
		return 0, err
	}
	t.Lock()
	snap := t.Snapshot()
	t.Unlock()
	defer snap.Release()
	err := r.send(command.KindRestoreChunk, func() error {
		_, err := snap.WriteTo(r)
		return err
	})
	if err == nil && s != nil {
		err = r.send(command.KindRestoreSessions, func() error {
			_, err := r.Write(s.AppendTo(nil))
			return err
		})
	}
	if err == nil {
		err = r.propose(r.last, r.commit.Append(nil), nil)
	}
	return r.end(err)
}

// send proposes the output of write as pieces of that kind.
func (r *replacement) send(k command.Kind, write func() error) error {
	r.piece = k
	err := write()
	switch {
	case r.failed != nil:
		return r.failed // without the tree's error text
	case err != nil:
		return err
	}
	return r.flush()
}

// begin returns when the restore has started. From then on, its end will be reported.
func (r *replacement) begin() error {
	begun := make(chan struct{})
	if err := r.propose(command.KindRestoreBegin, nil, func() { close(begun) }); err != nil {
		return err
	}
	limit := time.NewTimer(BeginLimit)
	defer limit.Stop()
	select {
	case <-begun:
		return nil
	case <-r.lost:
		return ErrLost
	case <-limit.C:
		return ErrNoLeader
	case <-r.ctx.Done():
		return fmt.Errorf("nothing was changed: %w", r.ctx.Err())
	case <-r.r.Stopping:
		return fmt.Errorf("nothing was changed: %w", propose.ErrClosed)
	}
}

// Write implements io.Writer. It proposes pieces.
func (r *replacement) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		k := min(len(p), pieceSize-len(r.buf))
		r.buf, p = append(r.buf, p[:k]...), p[k:]
		if len(r.buf) == pieceSize {
			if r.failed = r.flush(); r.failed != nil {
				return 0, r.failed
			}
		}
	}
	return total, nil
}

// flush proposes the current piece as soon as fewer than piecesAhead are in flight.
func (r *replacement) flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	select {
	case r.room <- struct{}{}:
	case <-r.lost:
		return ErrLost
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-r.r.Stopping:
		return propose.ErrClosed
	case o := <-r.ended:
		r.ended = again(o)
		return errEnded
	}
	c := &r.commit
	body := append(binary.BigEndian.AppendUint32(nil, c.Chunks), r.buf...)
	c.Chunks++
	c.Bytes += int64(len(r.buf))
	c.Sum = apply.PieceSum(c.Sum, r.buf)
	r.buf = r.buf[:0]
	return r.propose(r.piece, body, func() { <-r.room })
}

// again returns a channel that delivers o.
func again(o apply.Restored) <-chan apply.Restored {
	ch := make(chan apply.Restored, 1)
	ch <- o
	return ch
}

// propose proposes a command that has no effect if an earlier command is lost.
func (r *replacement) propose(k command.Kind, body []byte, done apply.RestoreWaiter) error {
	c := command.Command{Kind: k, Body: append(binary.BigEndian.AppendUint64(nil, r.id), body...), Way: r.way}
	if done != nil {
		c.Waiter = done
	}
	err := r.r.Local.Propose(&c, false)
	r.way = c.Way
	if errors.Is(err, propose.ErrLostBefore) {
		return ErrLost
	}
	return err
}

// end waits for the outcome of the restore. It aborts the restore unless the commit is
// in flight. It also aborts when the path to the leader was lost; that has no effect if
// the commit got through.
func (r *replacement) end(why error) (int64, error) {
	limit := time.NewTimer(SettleLimit)
	defer limit.Stop()
	abort := why != nil
	for {
		var retry <-chan time.Time
		if abort {
			r.way = 0
			_ = r.propose(command.KindRestoreAbort, nil, nil) // repeat until one gets through
			retry = time.After(settleRetry)
		}
		select {
		case o := <-r.ended:
			return r.verdict(o, why)
		case <-r.lost:
			r.lost = nil
			abort = true
		case <-retry:
		case <-limit.C:
			return r.verdict(apply.Restored{Err: fmt.Errorf("%w: it took more than %v", ErrUnknown, SettleLimit)}, why)
		case <-r.r.Stopping:
			return r.verdict(apply.Restored{Err: fmt.Errorf("%w: %w", ErrUnknown, propose.ErrClosed)}, why)
		}
	}
}

// verdict returns the results of Replace. If the commit was not proposed, i.e. there is
// a reason why, nothing can have changed.
func (*replacement) verdict(o apply.Restored, why error) (int64, error) {
	switch {
	case why == nil || errors.Is(why, errEnded):
		return o.Zxid, o.Err
	case errors.Is(why, ErrLost):
		return 0, why
	}
	return 0, fmt.Errorf("nothing was changed: %w", why)
}
