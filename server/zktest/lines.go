package zktest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
)

// longestData is the maximum number of bytes of a znode's data in a line.
const longestData = 40

func quoted(data []byte) string {
	if len(data) > longestData {
		return strconv.Quote(string(data[:longestData])) + fmt.Sprintf("… (%d bytes)", len(data))
	}
	return strconv.Quote(string(data))
}

// requestLine formats a request as a line.
func requestLine(q server.Request, paths []string) string {
	line := fmt.Sprintf("0x%x > %s %v", uint64(q.Session), number(q.Xid), q.Op)
	if len(paths) > 0 {
		line += " " + strings.Join(paths, " ")
	}
	return line + details(q.Op, q.Body)
}

// number formats the xid of a request.
func number(xid int32) string {
	switch xid {
	case proto.XidPing, proto.XidAuth, proto.XidSetWatches:
		return "-"
	}
	return strconv.Itoa(int(xid))
}

// details formats the fields of a request other than op and path.
func details(op proto.Op, body []byte) string {
	req, err := new(proto.Requests).Decode(op, body)
	if err != nil {
		return ""
	}
	switch q := req.(type) {
	case *proto.CreateRequest:
		return " " + quoted(q.Data) + modeWords(proto.CreateMode(q.Flags))
	case *proto.CreateTTLRequest:
		return " " + quoted(q.Data) + modeWords(proto.CreateMode(q.Flags))
	case *proto.SetDataRequest:
		return " " + quoted(q.Data) + versionWords(q.Version)
	case *proto.VersionRecord:
		return versionWords(q.Version)
	case *proto.WatchRecord:
		if q.Watch {
			return " watch"
		}
	}
	return ""
}

func modeWords(m proto.CreateMode) string {
	words := ""
	if m.Ephemeral() {
		words += " ephemeral"
	}
	if m.Sequential() {
		words += " sequential"
	}
	if m == proto.ModeContainer {
		words += " container"
	}
	if m.TTL() {
		words += " ttl"
	}
	return words
}

func versionWords(v int32) string {
	if v == -1 {
		return ""
	}
	return fmt.Sprintf(" version %d", v)
}

// replyLine formats a reply as a line.
func replyLine(h *proto.ReplyHeader, to said, body []byte) string {
	op := "reply"
	if to.request.Op != 0 {
		op = to.request.Op.String()
	}
	line := fmt.Sprintf("0x%x < %s %s", uint64(to.request.Session), number(h.Xid), op)
	if len(to.paths) > 0 {
		line += " " + strings.Join(to.paths, " ")
	}
	line += fmt.Sprintf(": zxid 0x%x", uint64(h.Zxid))
	if h.Err != proto.Ok {
		return line + ", " + h.Err.String()
	}
	r := proto.NewReader(body)
	switch to.request.Op.Basic() {
	case proto.OpCreate:
		var a proto.CreateResponse // create2 and its like append the stat
		if a.Decode(&r); r.Err() == nil && (len(to.paths) != 1 || a.Path != to.paths[0]) {
			line += ", " + a.Path
		}
	case proto.OpGetData:
		var a proto.GetDataResponse
		if a.Decode(&r); r.Err() == nil {
			line += ", " + quoted(a.Data)
		}
	case proto.OpGetChildren:
		var a proto.GetChildrenResponse // getChildren2 appends the stat
		if a.Decode(&r); r.Err() == nil {
			line += fmt.Sprintf(", %d children", len(a.Children))
		}
	}
	return line
}

func connectLine(h *proto.ConnectResponse) string {
	if h.SessionID == 0 {
		return "0x0 < connect: the session has expired"
	}
	return fmt.Sprintf("0x%x < connect: timeout %d ms", uint64(h.SessionID), h.TimeOut)
}

func eventLine(session int64, e *proto.WatcherEvent) string {
	what := strconv.Itoa(int(e.Type))
	switch proto.EventType(e.Type) {
	case proto.EventNodeCreated:
		what = "NodeCreated"
	case proto.EventNodeDeleted:
		what = "NodeDeleted"
	case proto.EventNodeDataChanged:
		what = "NodeDataChanged"
	case proto.EventNodeChildrenChanged:
		what = "NodeChildrenChanged"
	}
	return fmt.Sprintf("0x%x < event %s %s", uint64(session), what, e.Path)
}
