package zktest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
)

// errUncertain means that a command may or may not have been executed: it was in
// flight when leadership moved to another server, or when the link to the leader was
// cut.
var errUncertain = errors.New("a command was lost on its way")

// outcome is the result of a command.
type outcome struct {
	code    proto.Code
	session int64
	gen     uint64
}

// propose makes srv execute a command that we made ourselves.
func propose(srv *server.Server, cmd raftfsm.Command) (outcome, error) {
	done := make(chan outcome, 1)
	cmd.Waiter = srv.Waiter(func(a *raftfsm.Applied) {
		o := outcome{code: refusal(a), session: a.Session}
		if a.Attached != nil {
			o.session, o.gen = a.Attached.ID, a.Attached.Gen
		}
		done <- o
	})
	node := srv.Node()
	before := node.Status()
	if err := node.Propose(&cmd); err != nil {
		return outcome{}, err
	}
	// A command can get lost on its way to a leader without an error. We propose a sync
	// after it: if the sync completes first, the command was lost.
	passed := make(chan struct{}, 1)
	sync := raftfsm.Command{Kind: raftfsm.KindSync, Op: proto.OpSync, Waiter: srv.Waiter(func(*raftfsm.Applied) {
		select {
		case passed <- struct{}{}:
		default:
		}
	})}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; {
		select {
		case o := <-done:
			return o, nil
		case <-passed:
			select {
			case o := <-done:
				return o, nil
			default:
				return outcome{}, errUncertain
			}
		case <-tick.C:
		}
		if now := node.Status(); now.Leader != before.Leader || now.Epoch != before.Epoch || !now.Serving {
			return outcome{}, errUncertain
		}
		if time.Now().After(end) {
			return outcome{}, fmt.Errorf("a command was not executed within %v", patience)
		}
		if err := node.Propose(&sync); err != nil {
			return outcome{}, err
		}
	}
}

// refusal returns the error code of a command. A multi as a whole returns Ok even if
// one of its operations fails.
func refusal(a *raftfsm.Applied) proto.Code {
	if a.Code == proto.Ok && a.Result != nil {
		for i := range a.Result.Multi {
			if code := a.Result.Multi[i].Code; code != proto.Ok {
				return code
			}
		}
	}
	return a.Code
}

// barrier waits until srv has applied every command committed before the call.
func barrier(srv *server.Server) error {
	_, err := propose(srv, raftfsm.Command{Kind: raftfsm.KindSync, Op: proto.OpSync})
	return err
}

// endSession closes a session as its client would.
func endSession(srv *server.Server, id int64, gen uint64) (proto.Code, error) {
	o, err := propose(srv, raftfsm.Command{Kind: raftfsm.KindRequest, Op: proto.OpCloseSession, Session: id, Gen: gen})
	return o.code, err
}

// ownTimeout is the timeout of the sessions in which this package writes, in
// milliseconds.
const ownTimeout = 60_000

// execute runs a multi as the super user, in a separate session.
func execute(srv *server.Server, ops []proto.MultiOp) (proto.Code, error) {
	attach := raftfsm.Command{Kind: raftfsm.KindAttach, Op: proto.OpCreateSession, Timeout: ownTimeout}
	rand.Read(attach.Password[:])
	at, err := propose(srv, attach)
	if err != nil {
		return 0, err
	}
	req := proto.MultiRequest{Ops: ops}
	o, err := propose(srv, raftfsm.Command{
		Kind: raftfsm.KindRequest, Op: proto.OpMulti, Session: at.session, Gen: at.gen,
		IDs: []proto.ID{{Scheme: "super"}}, Body: req.Append(nil),
	})
	if err != nil {
		return 0, err
	}
	_, err = endSession(srv, at.session, at.gen)
	return o.code, err
}
