package raftfsm

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// The types of a mirror of another ensemble.
type (
	// MirrorState is the mirror in the replicated state.
	MirrorState = mirrored.State
	// MirrorPhase is the progress of a mirror.
	MirrorPhase = mirrored.Phase
	// MirrorMark is the last report of the other ensemble's leader.
	MirrorMark = mirrored.Mark
	// MirrorForward is a client's request to the other ensemble, or a session.
	MirrorForward = mirrored.Forward
)

// Mirroring follows an Apache ZooKeeper ensemble. Only the leader may call methods that
// change the state; the state machine ignores the proposals of earlier leaders. Its
// methods are safe for concurrent use.
type Mirroring struct{ n *Node }

// Mirroring returns the Mirroring of n.
func (n *Node) Mirroring() Mirroring { return Mirroring{n} }

// State returns the mirror, the last report of the ensemble's leader, and the newest
// zxid.
func (m Mirroring) State() (MirrorState, MirrorMark, int64) {
	return m.n.replica.Machine.Mirroring.Now()
}

// Changed returns a channel that is closed at the next change of the phase.
func (m Mirroring) Changed() <-chan struct{} { return m.n.replica.Machine.Mirroring.Changed() }

// Compared returns how many digests have matched since this server started.
func (m Mirroring) Compared() int64 { return m.n.numbers.Counters.Compared.Load() }

// Begin replaces the state by the ensemble's, with its sessions. It consumes t and s. It
// fails if the servers already have a state. After an error, the state may still be
// replaced later only if the error is ErrRestoreUnknown.
func (m Mirroring) Begin(ctx context.Context, t *tree.Tree, s *session.Table) error {
	return m.n.replacing.Follow(ctx, t, s)
}

// Append proposes transactions of the ensemble, as its leader sends them. prev is the zxid
// before the first one. done gets nil once they are applied here, or mirrored.ErrPhase. It
// isn't called if this server loses the leadership (Lost). It must not block. Append blocks
// while too many commands are in flight.
func (m Mirroring) Append(prev int64, txns [][]byte, done func(error)) error {
	body := binary.BigEndian.AppendUint64(nil, uint64(prev))
	for _, b := range txns {
		body = apply.AppendMirrorTxn(body, b)
	}
	return m.propose(command.KindMirrorTxns, body, done)
}

// Mark tells all servers the last report of the ensemble's leader. done is as for Append.
func (m Mirroring) Mark(mark *MirrorMark, done func(error)) error {
	return m.propose(command.KindMirrorMark, mark.Append(nil), done)
}

// Forwards returns the clients' requests since the last call, in order, and a channel
// that is closed when there are more. Only the leader has any.
func (m Mirroring) Forwards() (list []*MirrorForward, more <-chan struct{}) {
	return m.n.forwards.take()
}

// Heard returns the sessions that this server and its followers have heard from since the
// last call, with their timeouts. Only the leader has any.
func (m Mirroring) Heard() []MirrorForward {
	var live []int64
	done := make(chan struct{})
	m.n.mail.do(func() {
		defer close(done)
		if m.n.control.lead != nil {
			live = m.n.peers.AppendLive(m.n.cfg.Handler.Live(nil))
			m.n.peers.Touched(live)
			m.n.local.Sessions(func(id int64) { live = append(live, id) })
		}
	})
	select {
	case <-done:
	case <-m.n.control.done:
		return nil
	}
	live = m.n.forwards.takeHeard(live)
	heard := make([]MirrorForward, 0, len(live))
	m.n.replica.Machine.Tree.RLock()
	defer m.n.replica.Machine.Tree.RUnlock()
	for _, id := range live {
		if row, ok := m.n.replica.Machine.Sessions.Get(id); ok {
			heard = append(heard, MirrorForward{Session: id, Timeout: row.Timeout})
		}
	}
	return heard
}

// Sessions returns all sessions and their timeouts.
func (m Mirroring) Sessions() []MirrorForward {
	m.n.replica.Machine.Tree.RLock()
	defer m.n.replica.Machine.Tree.RUnlock()
	list := make([]MirrorForward, 0, m.n.replica.Machine.Sessions.Len())
	for row := range m.n.replica.Machine.Sessions.All {
		list = append(list, MirrorForward{Session: row.ID, Timeout: row.Timeout})
	}
	return list
}

// End makes our servers replace the ensemble if zxid is the newest applied zxid.
func (m Mirroring) End(ctx context.Context, zxid int64) error {
	return m.await(ctx, command.KindMirrorEnd, binary.BigEndian.AppendUint64(nil, uint64(zxid)))
}

// SetPhase changes the phase: from mirrored.Open to mirrored.Done or mirrored.Fenced, or from
// mirrored.Fenced to mirrored.Open.
func (m Mirroring) SetPhase(ctx context.Context, to MirrorPhase) error {
	return m.await(ctx, command.KindMirrorPhase, []byte{byte(to)})
}

// Lost returns a channel that is closed when the commands proposed until then may be lost.
func (m Mirroring) Lost() <-chan struct{} { return m.n.local.Losing() }

// errMirrorUnknown reports a change with an unknown outcome.
var errMirrorUnknown = errors.New("it is unknown whether the mirror has changed: check its status")

// await proposes a command and waits for its outcome.
func (m Mirroring) await(ctx context.Context, k command.Kind, body []byte) error {
	done, lost := make(chan error, 1), m.Lost()
	if err := m.propose(k, body, func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-lost:
		return errMirrorUnknown
	case <-ctx.Done():
		return errors.Join(errMirrorUnknown, ctx.Err())
	}
}

func (m Mirroring) propose(k command.Kind, body []byte, done func(error)) error {
	c := command.Command{Kind: k, Body: body}
	if done != nil {
		c.Waiter = apply.WaiterFunc(func(a *command.Applied) {
			if a.Code != proto.Ok {
				done(mirrored.ErrPhase)
				return
			}
			done(nil)
		})
	}
	return m.n.local.Propose(&c, false)
}

// forwards is the queue of the clients' requests to the other ensemble.
type forwards struct {
	mu   sync.Mutex
	list []*MirrorForward
	more chan struct{}
	// heard has the sessions that other servers have heard from; nil while no caller
	// asks.
	heard map[int64]struct{}
}

// note records that another server has heard from a session.
func (q *forwards) note(id int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.heard != nil {
		q.heard[id] = struct{}{}
	}
}

// takeHeard appends the sessions that other servers have heard from.
func (q *forwards) takeHeard(dst []int64) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.heard {
		dst = append(dst, id)
	}
	q.heard = make(map[int64]struct{})
	return dst
}

// reset forgets everything, when the leadership ends.
func (q *forwards) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list, q.heard = nil, nil
}

func (q *forwards) add(f *mirrored.Forward) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, f)
	if q.more != nil {
		close(q.more)
		q.more = nil
	}
}

func (q *forwards) take() ([]*MirrorForward, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	if q.more == nil {
		q.more = make(chan struct{})
	}
	return list, q.more
}
