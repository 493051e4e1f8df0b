package zktest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// Request says which request a client made.
type Request struct {
	Op      proto.Op
	Path    string // "" for those without one, and for a multi
	Session int64
}

// Match says which requests are meant. The zero value of a field means any, but
// pings and what else a client library sends to keep its session (auth, sasl,
// setWatches, closeSession) has to be named by Op, and so has the handshake,
// which is proto.OpCreateSession with the session that the client comes back to.
type Match struct {
	// Op also stands for its variants: proto.OpCreate for create2,
	// createContainer and createTTL, proto.OpGetChildren for getChildren2,
	// proto.OpSetWatches for setWatches2.
	Op proto.Op
	// Path of the request; one that ends in "*" stands for all that begin so. A
	// multi has the paths of all its parts.
	Path string
	// Session of the client.
	Session int64
	// Nth is for faults: which of the requests, 1 (or 0) being the next.
	Nth int
}

func (m Match) String() string {
	var b strings.Builder
	if m.Nth > 1 {
		fmt.Fprintf(&b, "no. %d of ", m.Nth)
	}
	if m.Op != 0 {
		b.WriteString(m.Op.String())
	} else {
		b.WriteString("request")
	}
	if m.Path != "" {
		fmt.Fprintf(&b, " %s", m.Path)
	}
	if m.Session != 0 {
		fmt.Fprintf(&b, " of session 0x%x", m.Session)
	}
	return b.String()
}

// String is what the test's log says.
func (r Request) String() string { return Match{Op: r.Op, Path: r.Path, Session: r.Session}.String() }

// meets reports whether a request with these paths is meant.
func (m Match) meets(r Request, paths []string) bool {
	switch {
	case m.Op == 0 && upkeep(r.Op), m.Op != 0 && m.Op != r.Op && m.Op != basic(r.Op):
		return false
	case m.Session != 0 && m.Session != r.Session:
		return false
	}
	return m.Path == "" || slices.ContainsFunc(paths, m.meetsPath)
}

// Means reports whether a request is meant; Nth means nothing here.
func (m Match) Means(r Request) bool { return m.meets(r, []string{r.Path}) }

func (m Match) meetsPath(path string) bool {
	if prefix, ok := strings.CutSuffix(m.Path, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return path == m.Path
}

// basic is the operation that op is a variant of.
func basic(op proto.Op) proto.Op {
	switch op {
	case proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return proto.OpCreate
	case proto.OpGetChildren2:
		return proto.OpGetChildren
	case proto.OpSetWatches2:
		return proto.OpSetWatches
	}
	return op
}

// upkeep reports whether client libraries send op by themselves.
func upkeep(op proto.Op) bool {
	switch op {
	case proto.OpCreateSession, proto.OpPing, proto.OpAuth, proto.OpSASL, proto.OpSetWatches, proto.OpSetWatches2, proto.OpCloseSession:
		return true
	}
	return false
}

// pathsOf returns the paths that a request names, as far as it decodes.
func pathsOf(op proto.Op, body []byte) []string {
	r := proto.NewReader(body)
	switch op {
	case proto.OpMulti, proto.OpMultiRead:
		var m proto.MultiRequest
		m.Decode(&r)
		return multiPaths(m.Ops)
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpExists,
		proto.OpGetData, proto.OpSetData, proto.OpGetACL, proto.OpSetACL, proto.OpGetChildren, proto.OpGetChildren2,
		proto.OpSync, proto.OpCheckWatches, proto.OpRemoveWatches, proto.OpAddWatch, proto.OpGetEphemerals,
		proto.OpGetAllChildrenNumber:
		if path := r.String(); r.Err() == nil && path != proto.NullString {
			return []string{path}
		}
	}
	return nil
}

// multiPaths returns the paths of the parts.
func multiPaths(ops []proto.MultiOp) []string {
	var paths []string
	for i := range ops {
		if path, ok := ops[i].Path(); ok {
			paths = append(paths, path)
		}
	}
	return paths
}
