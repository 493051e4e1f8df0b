package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Operations, as ZooKeeper names them.
const (
	Start             = "serverStart"
	Stop              = "serverStop"
	Create            = "create"
	Delete            = "delete"
	SetData           = "setData"
	SetACL            = "setAcl"
	Multi             = "multiOperation" // only one that failed: else its operations stand for themselves
	Reconfig          = "reconfig"
	EphemeralDeletion = "ephemeralZNodeDeletionOnSessionCloseOrExpire"
)

// Results of operations.
const (
	Success = "success"
	Failure = "failure"
	Invoked = "invoked" // it is going to happen
)

// Record is one change. Empty fields do not appear.
type Record struct {
	Time      time.Time
	Session   int64
	User      string // the names of the identities, separated by commas
	IP        string
	Operation string
	Path      string
	NodeType  string // of a create, see NodeType
	ACL       string // of a setAcl, see ACLText
	Result    string
}

// Field is a name and its value.
type Field struct{ Name, Value string }

// Fields returns what is known, in ZooKeeper's order.
func (r *Record) Fields() []Field {
	session := ""
	if r.Session != 0 {
		session = fmt.Sprintf("0x%x", uint64(r.Session))
	}
	all := []Field{
		{"session", session}, {"user", r.User}, {"ip", r.IP}, {"operation", r.Operation},
		{"znode", r.Path}, {"znode_type", r.NodeType}, {"acl", r.ACL}, {"result", r.Result},
	}
	known := all[:0]
	for _, f := range all {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}

// level is the level that ZooKeeper logs r with.
func (r *Record) level() string {
	if r.Result == Failure {
		return "ERROR"
	}
	return "INFO"
}

// appendLine appends r as ZooKeeper's logback.xml has it printed, with the local
// time.
func (r *Record) appendLine(b []byte) []byte {
	b = r.Time.AppendFormat(b, "2006-01-02 15:04:05,000")
	b = append(b, ' ')
	b = append(b, r.level()...)
	b = append(b, " o.a.z.a.Slf4jAuditLogger: "...)
	for i, f := range r.Fields() {
		if i > 0 {
			b = append(b, '\t')
		}
		b = append(b, f.Name...)
		b = append(b, '=')
		b = append(b, printable(f.Value)...)
	}
	return append(b, '\n')
}

// printable spells what would end a field or a line as an escape: a user's name
// is what the client says it is.
func printable(s string) string {
	control := func(c rune) bool { return c < ' ' || c >= 0x7f && c <= 0x9f || c == '\u2028' || c == '\u2029' }
	if !strings.ContainsFunc(s, control) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if control(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// NodeType returns the znode_type of a create.
func NodeType(m proto.CreateMode) string {
	switch m {
	case proto.ModePersistent:
		return "persistent"
	case proto.ModePersistentSequential:
		return "persistent_sequential"
	case proto.ModeEphemeral:
		return "ephemeral"
	case proto.ModeEphemeralSequential:
		return "ephemeral_sequential"
	case proto.ModeContainer:
		return "container"
	case proto.ModePersistentTTL:
		return "persistent_with_ttl"
	case proto.ModePersistentSequentialTTL:
		return "persistent_sequential_with_ttl"
	}
	return ""
}

// ACLText returns the acl of a setAcl: the entries one behind the other, with
// nothing between them.
func ACLText(acl []proto.ACL) string {
	var b strings.Builder
	for _, e := range acl {
		b.WriteString(e.ID.Scheme + ":" + e.ID.ID + ":")
		for _, p := range []struct {
			perm proto.Perms
			name byte
		}{{proto.PermCreate, 'c'}, {proto.PermDelete, 'd'}, {proto.PermRead, 'r'}, {proto.PermWrite, 'w'}, {proto.PermAdmin, 'a'}} {
			if e.Perms&p.perm != 0 {
				b.WriteByte(p.name)
			}
		}
	}
	return b.String()
}
