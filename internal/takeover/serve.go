package takeover

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
)

// pass passes on clients' requests to the ensemble's leader, until ctx ends or the connection
// fails.
func (f *feed) pass(ctx context.Context, conn *learner.Conn) error {
	for {
		list, more := f.to.Forwards()
		for _, w := range list {
			if err := f.ask(conn, w); err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask passes on one request.
func (f *feed) ask(conn *learner.Conn, w *mirrored.Forward) error {
	if w.Cxid == 0 {
		return conn.Revalidate(w.Session, w.Timeout)
	}
	r := learner.Request{Session: w.Session, Cxid: w.Cxid, Op: w.Op, Body: w.Body, Identities: w.IDs}
	if w.Op == proto.OpCreateSession {
		r.Body = proto.AppendInt(nil, w.Timeout)
	}
	err := conn.Request(r)
	switch {
	case err == nil || !errors.Is(err, learner.ErrNotSent) || errors.Is(err, learner.ErrNotSynced):
		return err
	case errors.Is(err, learner.ErrUnknownOp):
		f.answer(w.Session, w.Cxid, proto.ErrUnimplemented)
	case errors.Is(err, learner.ErrBody):
		f.answer(w.Session, w.Cxid, proto.ErrMarshalling)
	default: // too long: the ensemble's server would close the connection
		f.answer(w.Session, w.Cxid, proto.ErrSessionMoved)
	}
	return nil
}

// answer queues the outcome of a request that no transaction answers, after the transactions
// that have arrived.
func (f *feed) answer(session int64, cxid int32, code proto.Code) {
	f.set(func() {
		f.queue = append(f.queue, item{answer: &mirrored.Answer{Session: session, Cxid: cxid, Code: code}})
	})
	f.signal()
}

// SyncDone implements learner.Receiver.
func (f *feed) SyncDone(session int64, cxid int32) error {
	f.answer(session, cxid, proto.Ok)
	return nil
}

// Revalidated implements learner.Receiver. If the session isn't alive, the transaction that
// has ended it arrives before the answer, or has arrived.
func (*feed) Revalidated(int64, bool) error { return nil }

// touched returns a function for learner.Config.Touched: the sessions of our clients. During a
// cutover it returns all sessions: the clients can't reach any server for a while, and the
// ensemble's leader must not end their sessions.
func (m *Mirror) touched(to Target) func([]learner.Touch) []learner.Touch {
	return func(list []learner.Touch) []learner.Touch {
		var heard []mirrored.Forward
		switch {
		case m.cuttingOver():
			heard = to.Sessions()
		case m.cfg.Serve:
			heard = to.Heard()
		}
		for _, h := range heard {
			list = append(list, learner.Touch{Session: h.Session, Timeout: h.Timeout})
		}
		return list
	}
}

func (m *Mirror) cuttingOver() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cutting != nil
}
