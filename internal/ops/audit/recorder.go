package audit

import (
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
)

// Recorder records the transactions that a server applies. Only one goroutine may call
// Applied.
type Recorder struct {
	*Log
	wall     func() time.Time
	user     string // the user that the process runs as
	requests proto.Requests
}

// Client is a client that made a change.
type Client struct {
	IDs []proto.ID
	IP  string
}

// NewRecorder returns a Recorder that writes to sink, and records that the server starts.
// The caller must call Close.
func NewRecorder(sink Sink, log *slog.Logger, wall func() time.Time) *Recorder {
	r := &Recorder{Log: New(sink, log), wall: wall, user: ProcessUser()}
	r.Add(Record{Time: wall(), User: r.user, Operation: Start, Result: Success})
	return r
}

// Stopping records that the server stops.
func (r *Recorder) Stopping() {
	r.Add(Record{Time: r.wall(), User: r.user, Operation: Stop, Result: Invoked})
}

// ProcessUser returns the name of the user that the process runs as.
func ProcessUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid()) // e.g. in a container without /etc/passwd
}

// Applied records a change. by is nil unless a client of this server requested it; every
// server records the ephemeral znodes that ended with a session. The tree is locked.
func (r *Recorder) Applied(a *raftfsm.Applied, by *Client) {
	if a.Op == proto.OpCloseSession && a.Code == proto.Ok {
		for i := range a.Events {
			if e := &a.Events[i]; e.Type == proto.EventNodeDeleted {
				r.Add(Record{
					Time: r.wall(), Session: a.Session, User: r.user,
					Operation: EphemeralDeletion, Path: strings.Clone(e.Path), Result: Success,
				})
			}
		}
	}
	if by == nil || a.Kind != raftfsm.KindRequest || a.Code == proto.ErrSessionMoved {
		return
	}
	who := Record{Time: r.wall(), Session: a.Session, User: userNames(by.IDs), IP: by.IP}
	if a.Op == proto.OpMulti {
		r.recordMulti(&who, a)
		return
	}
	result := a.Result
	if a.Code != proto.Ok {
		result = &tree.Result{Code: a.Code}
	}
	if a.Op == proto.OpReconfig {
		who.Operation, who.Result = Reconfig, Failure
		if a.Code == proto.Ok {
			who.Path, who.Result = "/zookeeper/config", Success
		}
		r.Add(who)
		return
	}
	defer r.requests.Forget()
	if req, err := r.requests.Decode(a.Op, a.Body); err == nil {
		r.recordOp(who, a.Op, req, result)
	}
}

// recordMulti records the operations of a transaction, or its failure.
func (r *Recorder) recordMulti(who *Record, a *raftfsm.Applied) {
	var m proto.MultiRequest
	body := proto.AliasReader(a.Body)
	m.Decode(&body)
	failed := a.Code != proto.Ok || a.Result == nil || body.Err() != nil || len(a.Result.Multi) != len(m.Ops) ||
		slices.ContainsFunc(a.Result.Multi, func(one tree.Result) bool { return one.Op == proto.OpError })
	if failed {
		who.Operation, who.Result = Multi, Failure
		r.Add(*who)
		return
	}
	for i := range m.Ops {
		r.recordOp(*who, m.Ops[i].Op, m.Ops[i].Req, &a.Result.Multi[i])
	}
}

// recordOp records one operation, unless it changes no znode; change already names the
// client.
func (r *Recorder) recordOp(change Record, op proto.Op, req proto.Record, result *tree.Result) {
	change.Result = Failure
	if result != nil && result.Code == proto.Ok {
		change.Result = Success
	}
	change.Path, _ = proto.PathOf(req)
	switch q := req.(type) {
	case *proto.CreateRequest:
		change.Operation, change.NodeType = Create, NodeType(proto.CreateMode(q.Flags))
	case *proto.CreateTTLRequest:
		change.Operation, change.NodeType = Create, NodeType(proto.CreateMode(q.Flags))
	case *proto.SetDataRequest:
		change.Operation = SetData
	case *proto.SetACLRequest:
		change.Operation, change.ACL = SetACL, ACLText(q.ACL)
	default:
		if op != proto.OpDelete {
			return
		}
		change.Operation = Delete
	}
	if change.Operation == Create && change.Result == Success {
		change.Path = result.Path // with the number of a sequential znode
	}
	if change.Path == proto.NullString {
		change.Path = ""
	}
	change.Path = strings.Clone(change.Path) // we will overwrite the entry that it points into
	r.Add(change)
}

// MaxUserNames bounds the names in a record, in bytes, approximately. Clients choose
// the names of their digest identities.
const MaxUserNames = 1 << 10

// userNames joins the names of a client's identities: the proved identities, as many as
// fit into MaxUserNames, then the client's address.
func userNames(ids []proto.ID) string {
	var names, addresses []string
	room := MaxUserNames
	for _, id := range ids {
		switch id.Scheme {
		case "ip":
			addresses = append(addresses, id.ID)
			continue
		case "super":
			continue // a permission, not a name
		case "digest":
			id.ID, _, _ = strings.Cut(id.ID, ":")
		}
		if room > 0 && !slices.Contains(names, id.ID) {
			names = append(names, limits.Clip(id.ID, MaxUserNames))
			room -= len(id.ID)
		}
	}
	return strings.Join(append(names, addresses...), ",")
}
