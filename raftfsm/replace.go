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
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

const (
	// pieceSize is how much of a new state one command carries: two fit into a batch.
	pieceSize = 120 << 10
	// piecesAhead is how many pieces are on their way at a time. Clients' writes
	// wait behind no more than that.
	piecesAhead = 8
	// beginLimit is how long a restore waits for a leader.
	beginLimit = 15 * time.Second
	// settleLimit is how long it is waited for to hear of the end, and settleRetry
	// how long until asking again.
	settleLimit = 30 * time.Second
	settleRetry = time.Second
)

// Errors of Replace.
var (
	// ErrRestoreUnknown: the state may have been replaced, or be replaced yet.
	ErrRestoreUnknown = errors.New("whether the state was replaced is not known")
	// ErrRestoreLevel: not every server knows how.
	ErrRestoreLevel = errors.New("not every server of the ensemble is known to know of restores")
	// ErrRestoreBusy: another one has been sent to this server.
	ErrRestoreBusy = errors.New("another restore is under way at this server")
	// ErrRestoreNoLeader: nothing came of it, since nobody leads.
	ErrRestoreNoLeader = errors.New("there is no leader: nothing was changed")
)

// errRestoreLost is why a restore is given up that was on its way.
var errRestoreLost = errors.New("the way to the leader was lost: nothing was changed, try again")

// replacing is the restore that this server has proposed.
type replacing struct {
	running sync.Mutex // held as long as there is one

	mu    sync.Mutex
	id    uint64
	ended chan restored // gets one value when it was begun and has ended
}

// settled hears how a restore has ended. It does not block.
func (r *replacing) settled(id uint64, o restored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil && r.id == id {
		r.ended <- o // has room for the only one
		r.ended = nil
	}
}

// expect begins to wait for the end of the restore with that id.
func (r *replacing) expect(id uint64) <-chan restored {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := make(chan restored, 1)
	r.id, r.ended = id, ch
	return ch
}

// CanReplace says why Replace would be refused now, if that is known.
func (n *Node) CanReplace() error {
	if now, _ := n.Level(); now >= restoreLevel {
		return nil
	}
	who := n.others.behind(restoreLevel)
	if len(who) == 0 {
		who = []string{"all of them have only just said so, try again"}
	}
	return fmt.Errorf("%w: %s", ErrRestoreLevel, strings.Join(who, ", "))
}

// Replace puts another state in the place of the one that the ensemble has, as
// arrival.go says, and returns its zxid when this server has applied that. t and s
// are used up; the sessions in s end. The error says whether nothing was changed
// or whether that is not known. When ctx ends before the last piece is on its way,
// nothing is changed.
func (n *Node) Replace(ctx context.Context, t *tree.Tree, s *session.Table) (zxid int64, err error) {
	if err := n.CanReplace(); err != nil {
		return 0, err
	}
	if !n.replacing.running.TryLock() {
		return 0, ErrRestoreBusy
	}
	defer n.replacing.running.Unlock()
	r := &replacement{n: n, ctx: ctx, id: randomUint64(), room: make(chan struct{}, piecesAhead)}
	r.commit.sessions = endAll(t, s, n.cfg.Wall())
	r.lost, r.ended = n.intake.losing(), n.replacing.expect(r.id)
	return r.run(t)
}

// endAll ends all sessions in a tree that is in nobody's use, and returns the
// highest of the counters in their ids, or what ZooKeeper would begin with now.
func endAll(t *tree.Tree, s *session.Table, now time.Time) (counter uint64) {
	counter = uint64(now.UnixMilli()) << 16
	tx := tree.Txn{Time: now.UnixMilli()}
	for row := range s.All {
		counter = max(counter, session.Counter(row.ID))
		tx.Zxid, tx.Session = nextZxid(t.LastZxid()), row.ID
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
	ended <-chan restored
	room  chan struct{} // holds one for every piece on its way

	way    uint64
	commit restoreCommit
	buf    []byte // of the piece that is not full yet
	failed error  // why Write failed
}

// errEnded is why writing stops when the machine has dropped what arrives.
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
		err = r.failed // without what the tree has to say of it
	case err == nil:
		err = r.flush()
	}
	if err == nil {
		err = r.propose(KindRestoreCommit, r.commit.append(nil), nil)
	}
	return r.end(err)
}

// begin returns when the restore has begun, after which its end will be told.
func (r *replacement) begin() error {
	begun := make(chan struct{})
	if err := r.propose(KindRestoreBegin, nil, func() { close(begun) }); err != nil {
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

// Write implements io.Writer: it proposes pieces.
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

// flush proposes what there is of a piece, as soon as there is room for it.
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
	body := append(binary.BigEndian.AppendUint32(nil, c.chunks), r.buf...)
	c.chunks++
	c.bytes += int64(len(r.buf))
	c.sum = pieceSum(c.sum, r.buf)
	r.buf = r.buf[:0]
	return r.propose(KindRestoreChunk, body, func() { <-r.room })
}

// again returns a channel that says o.
func again(o restored) <-chan restored {
	ch := make(chan restored, 1)
	ch <- o
	return ch
}

// propose proposes a command that must not be done without those before it.
func (r *replacement) propose(k Kind, body []byte, done restoreWaiter) error {
	c := Command{Kind: k, Body: append(binary.BigEndian.AppendUint64(nil, r.id), body...), Way: r.way}
	if done != nil {
		c.Waiter = done
	}
	err := r.n.intake.propose(&c, false)
	r.way = c.Way
	if errors.Is(err, errLostBefore) {
		return errRestoreLost
	}
	return err
}

// end waits until it is known what has become of the restore. Unless its commit is
// on its way it is given up; so it is when that was lost, which comes too late if
// the commit has come through.
func (r *replacement) end(why error) (int64, error) {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	abort := why != nil
	for {
		var retry <-chan time.Time
		if abort {
			r.way = 0
			_ = r.propose(KindRestoreAbort, nil, nil) // until one has come through
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
			return r.verdict(restored{err: fmt.Errorf("%w: it took more than %v", ErrRestoreUnknown, settleLimit)}, why)
		case <-r.n.stopping:
			return r.verdict(restored{err: fmt.Errorf("%w: %w", ErrRestoreUnknown, ErrClosed)}, why)
		}
	}
}

// verdict is what Replace returns. Without a commit, that is if there was a reason
// not to propose it, nothing can have changed.
func (*replacement) verdict(o restored, why error) (int64, error) {
	switch {
	case why == nil || errors.Is(why, errEnded):
		return o.zxid, o.err
	case errors.Is(why, errRestoreLost):
		return 0, why
	}
	return 0, fmt.Errorf("nothing was changed: %w", why)
}
