package apply

import (
	"bytes"

	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Stream gets all transactions that are applied, as ZooKeeper encodes them. Its methods
// are called under the tree's lock, in the order of the zxids, and must not block. So a
// caller that holds the lock sees a consistent state and stream.
//
// Every zxid that the tree gets is in the stream: a zxid without changes, e.g. the first
// of an epoch, becomes an error transaction without a code, which has no effect.
type Stream interface {
	// Txn adds a transaction, which belongs to the stream.
	Txn(zxid int64, txn []byte)
	// Jump reports that the state was replaced, and not through transactions.
	Jump(zxid int64)
}

// recorder adds transactions to a Stream. It reads the tree and the newest transaction of
// its machine.
type recorder struct {
	to      Stream // nil: none
	tree    *tree.Tree
	tx      *tree.Txn
	changes []tree.Change // of the transaction being applied
}

// recording returns the buffer for the changes of the next transaction, or nil if there
// is no stream.
func (r *recorder) recording() *[]tree.Change {
	if r.to == nil {
		return nil
	}
	r.changes = r.changes[:0]
	return &r.changes
}

// result adds the transaction that has just been applied to the stream.
func (r *recorder) result(c *command.Command, res *tree.Result) {
	if r.to == nil {
		return
	}
	switch {
	case res.Code != proto.Ok:
		r.add(proto.OpError, &zktxn.ErrorTxn{Code: res.Code})
	case c.Op == proto.OpMulti && len(r.changes) < len(res.Multi):
		failed := &zktxn.MultiTxn{Ops: make([]zktxn.MultiOp, len(res.Multi))}
		for i := range res.Multi {
			failed.Ops[i] = zktxn.MultiOp{Type: proto.OpError, Body: &zktxn.ErrorTxn{Code: res.Multi[i].Code}}
		}
		r.add(proto.OpMulti, failed)
	case c.Op == proto.OpMulti:
		r.add(zktxn.BodyOf(proto.OpMulti, r.changes))
	case len(r.changes) > 0:
		r.add(zktxn.BodyOf(r.changes[0].Op, r.changes[:1]))
	default:
		r.nothing(proto.Ok)
	}
}

// endSession adds the end of a session to the stream. ZooKeeper requires the paths of the
// session's ephemeral znodes.
func (r *recorder) endSession(res *tree.Result) {
	if r.to == nil {
		return
	}
	body := &zktxn.CloseSessionTxn{Paths: []string{}}
	for i := range res.Events {
		if res.Events[i].Type == proto.EventNodeDeleted {
			body.Paths = append(body.Paths, res.Events[i].Path)
		}
	}
	r.add(proto.OpCloseSession, body)
}

// session adds a new session to the stream.
func (r *recorder) session(row *session.Session) {
	if r.to == nil {
		return
	}
	r.tx.Session = row.ID
	r.add(proto.OpCreateSession, &zktxn.CreateSessionTxn{Timeout: row.Timeout, Password: row.Password[:]})
}

// config adds a change of /zookeeper/config to the stream.
func (r *recorder) config() {
	if r.to != nil {
		r.add(zktxn.BodyOf(proto.OpSetData, r.changes[:1]))
	}
}

// nothing adds a transaction without changes, which only uses up a zxid.
func (r *recorder) nothing(code proto.Code) {
	if r.to != nil {
		r.add(proto.OpError, &zktxn.ErrorTxn{Code: code})
	}
}

// add adds a transaction with the zxid and the time of the machine's newest one to the stream.
func (r *recorder) add(op proto.Op, body any) {
	txn := zktxn.Txn{
		Header: zktxn.Header{Session: r.tx.Session, Zxid: r.tx.Zxid, Time: r.tx.Time, Type: op}, Body: body,
		Digest: &zktxn.Digest{Version: zktxn.DigestVersion, Value: r.tree.Digest()},
	}
	r.to.Txn(r.tx.Zxid, txn.Append(nil))
	clear(r.changes) // it may alias the log entry
}

// foreign adds a transaction of another ensemble, which came to us in this form.
func (r *recorder) foreign(zxid int64, txn []byte) {
	if r.to != nil {
		r.to.Txn(zxid, bytes.Clone(txn))
	}
}

// jump reports that the state was replaced.
func (r *recorder) jump() {
	if r.to != nil {
		r.to.Jump(r.tree.LastZxid())
	}
}
