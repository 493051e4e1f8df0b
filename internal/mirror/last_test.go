package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// receiver writes down what Last passes on.
type receiver struct {
	learner.Receiver
	lines []string
	fail  error
}

func (r *receiver) Commit(tx *zkfiles.Txn) error {
	r.lines = append(r.lines, fmt.Sprintf("%v %d", tx.Type, tx.Zxid))
	return r.fail
}

func (r *receiver) SyncDone(session int64, cxid int32) error {
	r.lines = append(r.lines, fmt.Sprintf("sync %d %d", session, cxid))
	return nil
}

// requests records requests, and answers them with play.
type requests struct {
	got  []learner.Request
	fail error
	play func()
}

func (r *requests) Request(q learner.Request) error {
	if r.got = append(r.got, q); len(r.got) == 2 && r.play != nil {
		go r.play()
	}
	return r.fail
}

func txn(session int64, cxid int32, zxid int64, op proto.Op) *zkfiles.Txn {
	return &zkfiles.Txn{Header: zkfiles.Header{Session: session, Cxid: cxid, Zxid: zxid, Type: op}}
}

// The last zxid belongs to the newest transaction before SYNC. Nothing is accepted after it.
func TestProve(t *testing.T) {
	t.Parallel()
	r := new(receiver)
	l := &Last{Receiver: r}
	must.Do(t, l.Commit(txn(99, 1, 4, proto.OpCloseSession))) // not ours: we haven't sent it
	leader := new(requests)
	leader.play = func() {
		must.Do(t, l.SyncDone(7, 1)) // of a client
		must.Do(t, l.Commit(txn(7, 1, 5, proto.OpCloseSession)))
		must.Do(t, l.Commit(txn(99, 1, 6, proto.OpCloseSession)))
		must.Do(t, l.Commit(txn(8, 3, 7, proto.OpSetData)))
		must.Do(t, l.SyncDone(99, 1))
	}
	if zxid, err := l.Prove(t.Context(), leader, 99); zxid != 7 || err != nil {
		t.Errorf("%d, %v", zxid, err)
	}
	if err := l.Commit(txn(8, 4, 8, proto.OpSetData)); !errors.Is(err, ErrSealed) {
		t.Error("a transaction after the last:", err)
	}
	if want := []string{"closeSession 4", "sync 7 1", "closeSession 5", "closeSession 6", "setData 7"}; !slices.Equal(r.lines, want) {
		t.Errorf("passed on %q, want %q", r.lines, want)
	}
	if q := leader.got; len(q) != 2 || q[0].Op != proto.OpCloseSession || q[1].Op != proto.OpSync || q[0].Session != 99 || q[1].Session != 99 {
		t.Errorf("%+v", q)
	}
	if _, err := l.Prove(t.Context(), leader, 99); err == nil {
		t.Error("proved twice")
	}
}

// A sync that comes before the transaction proves nothing: a leader without a quorum answers it.
func TestProveNothing(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(l *Last) error{
		"a sync alone":        func(l *Last) error { return l.SyncDone(99, 1) },
		"another transaction": func(l *Last) error { return errors.Join(l.Commit(txn(99, 1, 5, proto.OpError)), l.SyncDone(99, 1)) },
		"another session's end": func(l *Last) error {
			return errors.Join(l.Commit(txn(98, 1, 5, proto.OpCloseSession)), l.SyncDone(99, 1))
		},
		"an older end of it": func(l *Last) error {
			return errors.Join(l.Commit(txn(99, 0, 5, proto.OpCloseSession)), l.SyncDone(99, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &Last{Receiver: new(receiver)}
				ctx, cancel := context.WithCancelCause(t.Context())
				leader := &requests{play: func() { cancel(play(l)) }}
				if zxid, err := l.Prove(ctx, leader, 99); err == nil || !strings.Contains(err.Error(), "before the transaction") {
					t.Errorf("%d, %v", zxid, err)
				}
			})
		})
	}
}

func TestProveFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l := &Last{Receiver: new(receiver)}
		if _, err := l.Prove(ctx, new(requests), 99); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lost its quorum") {
			t.Error("a leader that doesn't answer:", err)
		}
		l, broken := &Last{Receiver: new(receiver)}, errors.New("broken")
		if _, err := l.Prove(ctx, &requests{fail: broken}, 99); !errors.Is(err, broken) {
			t.Error(err)
		}
		l = &Last{Receiver: &receiver{fail: broken}}
		if err := l.Commit(txn(1, 1, 5, proto.OpCreate)); !errors.Is(err, broken) {
			t.Error("an error of the receiver is lost:", err)
		}
	})
}
