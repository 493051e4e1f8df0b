package raftfsm

import (
	"context"
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
	// piecesAhead is how many pieces are in flight at a time. Clients' writes queue
	// after at most that many.
	piecesAhead = 8
	// beginLimit is how long a restore waits for a leader.
	beginLimit = 15 * time.Second
	// settleLimit is how long a restore waits for its outcome, and settleRetry how long
	// it waits before it asks again.
	settleLimit = 30 * time.Second
	settleRetry = time.Second
)

// Errors of Replace.
var (
	// ErrRestoreUnknown: the state may have been replaced, or still be replaced later.
	ErrRestoreUnknown = apply.ErrRestoreUnknown
	// ErrRestoreLevel: not every server supports restores.
	ErrRestoreLevel = errors.New("not every server of the ensemble is known to know of restores")
	// ErrRestoreBusy: this server is already running another restore.
	ErrRestoreBusy = errors.New("another restore is under way at this server")
	// ErrRestoreNoLeader: nothing was changed, because there is no leader.
	ErrRestoreNoLeader = errors.New("there is no leader: nothing was changed")
)

// errRestoreLost is the reason for giving up a restore in flight.
var errRestoreLost = errors.New("the way to the leader was lost: nothing was changed, try again")

// replacing is the restore that this server has proposed.
type replacing struct {
	running sync.Mutex // held while a restore runs

	mu    sync.Mutex
	id    uint64
	ended chan apply.Restored // gets one value when the restore was begun and has ended
}

// settled records how a restore has ended. It does not block.
func (r *replacing) settled(id uint64, o apply.Restored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil && r.id == id {
		r.ended <- o // its buffer has room for the only value
		r.ended = nil
	}
}

// expect prepares to receive the end of the restore with that id.
func (r *replacing) expect(id uint64) <-chan apply.Restored {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := make(chan apply.Restored, 1)
	r.id, r.ended = id, ch
	return ch
}

// CanReplace returns the reason why Replace would be refused now, if it is known.
func (n *Node) CanReplace() error {
	if now, _ := n.Level(); now >= apply.RestoreLevel {
		return nil
	}
	who := n.peers.Lacking(apply.RestoreLevel)
	if len(who) == 0 {
		who = []string{"all of them have only just said so, try again"}
	}
	return fmt.Errorf("%w: %s", ErrRestoreLevel, strings.Join(who, ", "))
}

// Replace replaces the state of the ensemble, as described in internal/apply/statetransfer.go. It returns
// the zxid after this server has applied the new state. It consumes t and s, and ends
// the sessions in s. The error tells whether nothing was changed or whether that is
// unknown. If ctx ends before the last piece is in flight, nothing is changed.
func (n *Node) Replace(ctx context.Context, t *tree.Tree, s *session.Table) (zxid int64, err error) {
	if err := n.CanReplace(); err != nil {
		return 0, err
	}
	if !n.replacing.running.TryLock() {
		return 0, ErrRestoreBusy
	}
	defer n.replacing.running.Unlock()
	r := &replacement{n: n, ctx: ctx, id: randomUint64(), room: make(chan struct{}, piecesAhead)}
	r.commit.Sessions = endAll(t, s, n.cfg.Wall())
	r.lost, r.ended = n.intake.Losing(), n.replacing.expect(r.id)
	return r.run(t)
}

// endAll ends all sessions in a tree that is not in use. It returns the highest counter
// in their ids, or the one that ZooKeeper would start with now if that is higher.
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
	n   *Node
	ctx context.Context
	id  uint64

	lost  <-chan struct{}
	ended <-chan apply.Restored
	room  chan struct{} // holds one value for each piece in flight

	way    uint64
	commit apply.RestoreCommit
	buf    []byte // the piece that is not full yet
	failed error  // the error that ended Write
}

// errEnded is the error that ends the writing when the machine has dropped the new
// state.
var errEnded = errors.New("ended")

func (r *replacement) run(t *tree.Tree) (int64, error) {
	if err := r.begin(); err != nil {
		return 0, err
	}
	t.Lock()
	snap := t.Snapshot()
	t.Unlock()
	defer snap.Release()
	_, err := snap.WriteTo(r)
	switch {
	case r.failed != nil:
		err = r.failed // without the tree's error text
	case err == nil:
		err = r.flush()
	}
	if err == nil {
		err = r.propose(command.KindRestoreCommit, r.commit.Append(nil), nil)
	}
	return r.end(err)
}

// begin returns when the restore has begun. From then on, its end will be reported.
func (r *replacement) begin() error {
	begun := make(chan struct{})
	if err := r.propose(command.KindRestoreBegin, nil, func() { close(begun) }); err != nil {
		return err
	}
	limit := time.NewTimer(beginLimit)
	defer limit.Stop()
	select {
	case <-begun:
		return nil
	case <-r.lost:
		return errRestoreLost
	case <-limit.C:
		return ErrRestoreNoLeader
	case <-r.ctx.Done():
		return fmt.Errorf("nothing was changed: %w", r.ctx.Err())
	case <-r.n.stopping:
		return fmt.Errorf("nothing was changed: %w", ErrClosed)
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
		return errRestoreLost
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-r.n.stopping:
		return ErrClosed
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
	return r.propose(command.KindRestoreChunk, body, func() { <-r.room })
}

// again returns a channel that delivers o.
func again(o apply.Restored) <-chan apply.Restored {
	ch := make(chan apply.Restored, 1)
	ch <- o
	return ch
}

// propose proposes a command that must not take effect without the commands before it.
func (r *replacement) propose(k command.Kind, body []byte, done apply.RestoreWaiter) error {
	c := command.Command{Kind: k, Body: append(binary.BigEndian.AppendUint64(nil, r.id), body...), Way: r.way}
	if done != nil {
		c.Waiter = done
	}
	err := r.n.intake.Propose(&c, false)
	r.way = c.Way
	if errors.Is(err, propose.ErrLostBefore) {
		return errRestoreLost
	}
	return err
}

// end waits for the outcome of the restore. It aborts the restore unless the commit is
// in flight. It also aborts when the path to the leader was lost; that has no effect if
// the commit got through.
func (r *replacement) end(why error) (int64, error) {
	limit := time.NewTimer(settleLimit)
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
			return r.verdict(apply.Restored{Err: fmt.Errorf("%w: it took more than %v", ErrRestoreUnknown, settleLimit)}, why)
		case <-r.n.stopping:
			return r.verdict(apply.Restored{Err: fmt.Errorf("%w: %w", ErrRestoreUnknown, ErrClosed)}, why)
		}
	}
}

// verdict returns the results of Replace. If the commit was not proposed, i.e. there is
// a reason why, nothing can have changed.
func (*replacement) verdict(o apply.Restored, why error) (int64, error) {
	switch {
	case why == nil || errors.Is(why, errEnded):
		return o.Zxid, o.Err
	case errors.Is(why, errRestoreLost):
		return 0, why
	}
	return 0, fmt.Errorf("nothing was changed: %w", why)
}
