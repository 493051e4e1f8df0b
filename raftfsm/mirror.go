package raftfsm

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Mirror is the mirror of another ensemble that is a part of the state.
type Mirror = apply.Mirror

// MirrorMark is what the leader of a mirrored ensemble has said last.
type MirrorMark = apply.MirrorMark

// MirrorPhase is how far a mirror has come.
type MirrorPhase = apply.MirrorPhase

// The phases of a mirror.
const (
	MirrorNone      = apply.MirrorNone      // there is none
	MirrorFollowing = apply.MirrorFollowing // the state is that of another ensemble
	MirrorOpen      = apply.MirrorOpen      // these servers have taken over, and can give back
	MirrorFenced    = apply.MirrorFenced    // they have given back
	MirrorDone      = apply.MirrorDone      // they have taken over for good
)

// ErrMirrorPhase reports that a command of a mirror had no effect, because the mirror is in
// another phase, is broken, or has another zxid.
var ErrMirrorPhase = errors.New("the mirror has changed in the meantime")

// Mirroring follows an Apache ZooKeeper ensemble. Only the leader may call methods that change
// the state; the state machine ignores what an earlier leader has proposed. Its methods are
// safe for concurrent use.
type Mirroring struct{ n *Node }

// Mirroring returns the Mirroring of n.
func (n *Node) Mirroring() Mirroring { return Mirroring{n} }

// State returns the mirror, what the ensemble's leader has said last, and the newest zxid.
func (m Mirroring) State() (Mirror, MirrorMark, int64) { return m.n.replica.machine.MirrorNow() }

// Changed returns a channel that is closed at the next change of the phase.
func (m Mirroring) Changed() <-chan struct{} { return m.n.replica.machine.MirrorChanged() }

// Compared returns how many digests have matched since this server started.
func (m Mirroring) Compared() int64 { return m.n.numbers.Counters.Compared.Load() }

// Begin replaces the state by the ensemble's, with its sessions. It consumes t and s. It fails
// if the servers have a state of their own. After an error, the state may still be replaced
// later only if the error is ErrRestoreUnknown.
func (m Mirroring) Begin(ctx context.Context, t *tree.Tree, s *session.Table) error {
	return m.n.replacing.Follow(ctx, t, s)
}

// Append proposes transactions of the ensemble, as its leader sends them. prev is the zxid
// before the first of them. done gets nil once they are applied here, or ErrMirrorPhase. It
// isn't called if this server loses the leadership (Lost). It must not block. Append blocks
// while too many commands are in flight.
func (m Mirroring) Append(prev int64, txns [][]byte, done func(error)) error {
	body := binary.BigEndian.AppendUint64(nil, uint64(prev))
	for _, b := range txns {
		body = apply.AppendMirrorTxn(body, b)
	}
	return m.propose(command.KindMirrorTxns, body, done)
}

// Mark tells all servers what the ensemble's leader has said last.
func (m Mirroring) Mark(mark *MirrorMark) error {
	return m.propose(command.KindMirrorMark, mark.Append(nil), nil)
}

// End takes over from the ensemble if zxid is the newest one that is applied.
func (m Mirroring) End(ctx context.Context, zxid int64) error {
	return m.await(ctx, command.KindMirrorEnd, binary.BigEndian.AppendUint64(nil, uint64(zxid)))
}

// SetPhase changes the phase: from MirrorOpen to MirrorDone or MirrorFenced, or from
// MirrorFenced to MirrorOpen.
func (m Mirroring) SetPhase(ctx context.Context, to MirrorPhase) error {
	return m.await(ctx, command.KindMirrorPhase, []byte{byte(to)})
}

// Lost returns a channel that is closed when the commands proposed until then may be lost.
func (m Mirroring) Lost() <-chan struct{} { return m.n.local.Losing() }

// errMirrorUnknown reports a change whose outcome is not known.
var errMirrorUnknown = errors.New("whether the mirror has changed is not known: ask for its status")

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
				done(ErrMirrorPhase)
				return
			}
			done(nil)
		})
	}
	return m.n.local.Propose(&c, false)
}
