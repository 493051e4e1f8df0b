package command

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Waiter waits for a command that this server proposed.
type Waiter interface {
	// Applied tells the outcome of the command. It is called on the goroutine that
	// applies the log, with the tree's write lock held, and must not block.
	Applied(a *Applied)
}

// Applied is the outcome of one command of the log. It and everything it points to are
// valid only during the call that it is passed to.
type Applied struct {
	Kind    Kind
	Op      proto.Op // OpCreateSession for KindAttach, OpCloseSession also for expiry
	Waiter  Waiter   // of the Command, if this server proposed it and waits for it; otherwise nil
	Session int64
	Zxid    int64        // the transaction's zxid; 0 when it has none (sync, re-attach, moved sessions)
	Code    proto.Code   // ErrSessionMoved and ErrSessionExpired also when the session check refused it
	Result  *tree.Result // nil unless the command reached the tree
	Events  []tree.Event // to be fired before the reply
	Body    []byte       // the request's body, nil for KindAttach and KindSync

	// Attached is the session as it is after a successful KindAttach.
	Attached *session.Session
}
