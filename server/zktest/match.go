package zktest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// Request identifies a client's request.
type Request struct {
	Op      proto.Op
	Path    string // "" for a multi and for requests without a path
	Session int64
}

// Match selects requests. The zero value of a field matches any value, with two exceptions
// that you have to select with Op: requests that client libraries send to keep their
// session (pings, auth, sasl, setWatches, closeSession), and the handshake, which is
// proto.OpCreateSession with the session that the client reconnects to.
type Match struct {
	// Op also matches its variants: proto.OpCreate matches create2, createContainer
	// and createTTL, proto.OpGetChildren matches getChildren2, and proto.OpSetWatches
	// matches setWatches2.
	Op proto.Op
	// Path is the request's path. A Path that ends in "*" matches all paths with that
	// prefix. A multi has the paths of all its operations.
	Path string
	// Session is the client's session.
	Session int64
	// Nth applies to faults only: it selects the nth matching request. 1 (or 0) is
	// the next.
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

// String formats the request for the test's log.
func (r Request) String() string { return Match{Op: r.Op, Path: r.Path, Session: r.Session}.String() }

// meets reports whether m matches a request with these paths.
func (m Match) meets(r Request, paths []string) bool {
	switch {
	case m.Op == 0 && upkeep(r.Op), m.Op != 0 && m.Op != r.Op && m.Op != r.Op.Basic():
		return false
	case m.Session != 0 && m.Session != r.Session:
		return false
	}
	return m.Path == "" || slices.ContainsFunc(paths, m.meetsPath)
}

// Means reports whether m matches a request. It ignores Nth.
func (m Match) Means(r Request) bool { return m.meets(r, []string{r.Path}) }

func (m Match) meetsPath(path string) bool {
	if prefix, ok := strings.CutSuffix(m.Path, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return path == m.Path
}

// upkeep reports whether client libraries send op on their own.
func upkeep(op proto.Op) bool {
	return op.Kind() == proto.Session || op == proto.OpCreateSession
}

// pathsOf returns the paths that a request contains, as far as it can be decoded.
func pathsOf(op proto.Op, body []byte) []string {
	r := proto.NewReader(body)
	switch {
	case op == proto.OpMulti || op == proto.OpMultiRead:
		var m proto.MultiRequest
		m.Decode(&r)
		return multiPaths(m.Ops)
	case op.HasPath():
		var p proto.PathRecord
		if p.Decode(&r); r.Err() == nil && p.Path != proto.NullString {
			return []string{p.Path}
		}
	}
	return nil
}

// multiPaths returns the paths of the operations in a multi.
func multiPaths(ops []proto.MultiOp) []string {
	var paths []string
	for i := range ops {
		if path, ok := ops[i].Path(); ok {
			paths = append(paths, path)
		}
	}
	return paths
}
