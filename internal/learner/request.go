package learner

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
)

// Request is a client's request that the leader should execute.
type Request struct {
	Session int64
	Cxid    int32 // the client's number for it; its transaction has the same
	Op      proto.Op
	// Body is the request's record as the client sent it. For createSession, Body is the timeout in
	// milliseconds as an int, and Session is an id that we have chosen.
	Body []byte
	// Identities are the client's proven identities. The leader uses them to check ACLs.
	Identities []proto.ID
}

// The errors of a request that the leader can't execute.
var (
	// ErrNotSent is in the tree of every error of Request and Revalidate after which the
	// leader certainly doesn't have the request. After other errors it may have it.
	ErrNotSent = errors.New("not sent to the leader")
	// ErrNotSynced means that the state isn't exact yet, or that the connection has failed.
	ErrNotSynced = errors.New("the connection to the leader accepts no requests: the state is not exact yet, or the connection has failed")
	// ErrUnknownOp means that the ensemble doesn't know the operation.
	ErrUnknownOp = errors.New("the ensemble accepts no such request from an observer")
	// ErrBody means that the body isn't a record of the operation. Most leaders never
	// answer such a request.
	ErrBody = errors.New("the body is malformed")
	// ErrTooLong means that the request exceeds the ensemble's jute.maxbuffer. The leader
	// would close the connection.
	ErrTooLong = errors.New("longer than the ensemble's jute.maxbuffer")
)

// questions contains the requests that the leader hasn't answered.
type questions struct {
	open     bool // the leader accepts requests
	syncs    []syncRequest
	sessions []int64        // of Revalidate
	decoder  proto.Requests // checks bodies
}

type syncRequest struct {
	session int64
	cxid    int32
}

// requestHead is the length of session, cxid and type before the body of a REQUEST. clientHead is
// the length of cxid and type before the body of a client's request. jute.maxbuffer includes
// clientHead.
const (
	requestHead = 8 + 4 + 4
	clientHead  = 4 + 4
)

// Request sends a request to the leader. Its transaction arrives at Receiver.Commit, also if
// it fails. A sync has none, and ends with Receiver.SyncDone instead.
func (c *Conn) Request(r Request) error {
	c.send.Lock()
	defer c.send.Unlock()
	if err := c.check(&r); err != nil {
		return fmt.Errorf("learner: %v of session %#x: %w: %w", r.Op, r.Session, ErrNotSent, err)
	}
	data := make([]byte, 0, requestHead+len(r.Body))
	data = proto.AppendLong(data, r.Session)
	data = proto.AppendInt(data, r.Cxid)
	data = proto.AppendInt(data, int32(r.Op))
	data = append(data, r.Body...)
	if r.Op == proto.OpSync {
		c.asked.syncs = append(c.asked.syncs, syncRequest{r.Session, r.Cxid})
	}
	if err := c.sendLocked(zab.Packet{Kind: zab.KindRequest, Zxid: -1, Data: data}, r.Identities...); err != nil {
		return fmt.Errorf("learner: %v of session %#x: %w", r.Op, r.Session, err)
	}
	return nil
}

// check returns an error for a request that the leader can't execute.
func (c *Conn) check(r *Request) error {
	switch {
	case !c.asked.open:
		return ErrNotSynced
	case !c.knows(r.Op):
		return ErrUnknownOp
	case clientHead+len(r.Body) > c.cfg.MaxRequest:
		return fmt.Errorf("%w: %d bytes", ErrTooLong, clientHead+len(r.Body))
	}
	for _, id := range r.Identities {
		if max(len(id.Scheme), len(id.ID)) > c.cfg.MaxRequest {
			return fmt.Errorf("%w: an identity", ErrTooLong)
		}
	}
	defer c.asked.decoder.Forget()
	return c.checkBody(r)
}

// knows reports whether the leader executes an operation. ZooKeeper 3.4 sends no configuration
// in NEWLEADER. An operation that it doesn't know makes it close the connection.
func (c *Conn) knows(op proto.Op) bool {
	switch op {
	case proto.OpCreateSession, proto.OpCloseSession, proto.OpSync, proto.OpCheck:
		return true
	}
	return op.Kind() == proto.Write && (op <= proto.OpMulti || c.members != "")
}

func (c *Conn) checkBody(r *Request) error {
	var err error
	switch r.Op {
	case proto.OpCreateSession:
		if len(r.Body) != 4 {
			err = fmt.Errorf("%d bytes instead of the timeout", len(r.Body))
		}
	case proto.OpMulti:
		return c.checkMulti(r.Body)
	default:
		_, err = c.asked.decoder.Decode(r.Op, r.Body)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBody, err)
	}
	return nil
}

// checkMulti checks the operations of a multi. A leader checks all paths before it has numbered the
// transaction, and doesn't answer if a path is invalid.
func (c *Conn) checkMulti(body []byte) error {
	n, wrong := 0, error(nil)
	err := c.asked.decoder.Parts(body, func(part proto.MultiOp) bool {
		n++
		switch {
		case part.Op.Kind() == proto.Read:
			wrong = fmt.Errorf("%w: operation %d of a multi is %v", ErrBody, n, part.Op)
		case !c.knows(part.Op):
			wrong = fmt.Errorf("%w: operation %d of a multi is %v", ErrUnknownOp, n, part.Op)
		case pathOf(part.Req) == proto.NullString:
			wrong = fmt.Errorf("%w: operation %d of a multi has no path", ErrBody, n)
		}
		return wrong == nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBody, err)
	}
	return wrong
}

// pathOf returns the path in an operation of a multi.
func pathOf(req proto.Record) string {
	switch q := req.(type) {
	case *proto.CreateRequest:
		return q.Path
	case *proto.CreateTTLRequest:
		return q.Path
	case *proto.DeleteRequest: // and check's record
		return q.Path
	case *proto.SetDataRequest:
		return q.Path
	}
	return proto.NullString
}

// Revalidate asks the leader whether a session is alive that a client wants to continue here,
// and makes it ours if it is. The timeout in milliseconds is the one that we have negotiated
// with the client. The answer arrives at Receiver.Revalidated.
func (c *Conn) Revalidate(session int64, timeout int32) error {
	c.send.Lock()
	defer c.send.Unlock()
	if !c.asked.open {
		return fmt.Errorf("learner: to revalidate session %#x: %w: %w", session, ErrNotSent, ErrNotSynced)
	}
	c.asked.sessions = append(c.asked.sessions, session)
	data := proto.AppendInt(proto.AppendLong(nil, session), timeout)
	if err := c.sendLocked(zab.Packet{Kind: zab.KindRevalidate, Zxid: -1, Data: data}); err != nil {
		return fmt.Errorf("learner: to revalidate session %#x: %w", session, err)
	}
	return nil
}
