package tree

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/transcript"
	"github.com/zkgo/zkgo/proto"
)

var rewrite = flag.Bool("rewrite", false, "write the output of the commands into testdata/transcript.txt")

// writer applies the commands of a transcript as consecutive transactions.
type writer struct {
	tree  *Tree
	tx    Txn
	multi *proto.MultiRequest // while its operations are read
}

// createFlags are the flags of the kinds of znodes.
var createFlags = map[string]int32{"persistent": 0, "ephemeral": 1, "sequential": 2, "container": 4}

// eventNames are the types of events.
var eventNames = map[proto.EventType]string{
	proto.EventNodeCreated: "created", proto.EventNodeDeleted: "deleted",
	proto.EventNodeDataChanged: "changed", proto.EventNodeChildrenChanged: "children",
}

// request returns the request of one command.
func (w *writer) request(command string, args []string) (proto.Op, proto.Record) {
	version := func(i int) int32 {
		if i >= len(args) {
			return -1
		}
		n, _ := strconv.Atoi(args[i])
		return int32(n)
	}
	switch command {
	case "create":
		flags := createFlags[args[2]]
		op := proto.OpCreate
		if flags == createFlags["container"] {
			op = proto.OpCreateContainer
		}
		return op, &proto.CreateRequest{Path: args[0], Data: []byte(args[1]), ACL: proto.OpenACL(), Flags: flags}
	case "set":
		return proto.OpSetData, &proto.SetDataRequest{Path: args[0], Data: []byte(args[1]), Version: version(2)}
	case "delete":
		return proto.OpDelete, &proto.DeleteRequest{Path: args[0], Version: version(1)}
	case "check":
		return proto.OpCheck, &proto.CheckVersionRequest{Path: args[0], Version: version(1)}
	case "protect":
		return proto.OpSetACL, &proto.SetACLRequest{Path: args[0], Version: -1,
			ACL: []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}}
	case "close":
		return proto.OpCloseSession, nil
	}
	panic("unknown command " + command)
}

// apply applies a write and returns its result and events.
func (w *writer) apply(op proto.Op, req proto.Record) string {
	w.tx.Zxid++
	r := w.tree.Apply(&w.tx, op, req)
	out := []string{r.Code.String()}
	if r.Path != "" {
		out[0] += " " + r.Path
	}
	for i, part := range r.Multi {
		out = append(out, strings.TrimRight(fmt.Sprintf("  %d: %s %s", i, part.Code.String(), part.Path), " "))
	}
	events := make([]string, len(r.Events))
	for i, e := range r.Events {
		events[i] = fmt.Sprintf("  event: %s %s", eventNames[e.Type], e.Path)
	}
	return strings.Join(append(out, events...), "\n")
}

// get returns the state of a znode.
func (w *writer) get(path string) string {
	n := w.tree.Get(path)
	if n == nil {
		return "no node"
	}
	var st proto.Stat
	n.Stat(&st)
	children := slices.Sorted(w.tree.Children(n))
	return fmt.Sprintf("%q version %d, czxid %d, mzxid %d, pzxid %d, cversion %d, owner %d, children %v",
		n.Data(), st.Version, st.Czxid, st.Mzxid, st.Pzxid, st.Cversion, st.EphemeralOwner, children)
}

// TestTranscript runs
//
//	session ID                   the next commands come from this session
//	create PATH DATA KIND        persistent, ephemeral, sequential or container
//	set PATH DATA [VERSION]
//	delete PATH [VERSION]
//	check PATH [VERSION]         in a multi
//	protect PATH                 only reading is allowed from now on
//	close                        the session ends
//	multi, commit                the writes in between are one transaction
//	get PATH
func TestTranscript(t *testing.T) {
	t.Parallel()
	w := &writer{tree: New(), tx: Txn{Session: 1}}
	err := transcript.Run("testdata/transcript.txt", *rewrite, func(command string, args []string) string {
		switch command {
		case "session":
			w.tx.Session, _ = strconv.ParseInt(args[0], 10, 64)
			return ""
		case "get":
			return w.get(args[0])
		case "multi":
			w.multi = &proto.MultiRequest{}
			return ""
		case "commit":
			req := w.multi
			w.multi = nil
			return w.apply(proto.OpMulti, req)
		}
		op, req := w.request(command, args)
		if w.multi != nil {
			w.multi.Ops = append(w.multi.Ops, proto.MultiOp{Op: op, Req: req})
			return ""
		}
		return w.apply(op, req)
	})
	if err := errors.Join(err, w.tree.Check()); err != nil {
		t.Error(err)
	}
}
