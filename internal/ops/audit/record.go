package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Operations, by ZooKeeper's names.
const (
	Start             = "serverStart"
	Stop              = "serverStop"
	Create            = "create"
	Delete            = "delete"
	SetData           = "setData"
	SetACL            = "setAcl"
	Multi             = "multiOperation" // only a failed one; for a successful one each operation has its own record
	Reconfig          = "reconfig"
	EphemeralDeletion = "ephemeralZNodeDeletionOnSessionCloseOrExpire"
)

// Results of operations.
const (
	Success = "success"
	Failure = "failure"
	Invoked = "invoked" // about to happen
)

// Record is one change. Empty fields are omitted.
type Record struct {
	Time      time.Time
	Session   int64
	User      string // the names of all identities, separated by commas
	IP        string
	Operation string
	Path      string
	NodeType  string // for create, see NodeType
	ACL       string // for setAcl, see ACLText
	Result    string
}

// Field is a name and its value.
type Field struct{ Name, Value string }

// Fields returns the fields that are set, in ZooKeeper's order.
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

// level returns the level at which ZooKeeper logs r.
func (r *Record) level() string {
	if r.Result == Failure {
		return "ERROR"
	}
	return "INFO"
}

// appendLine appends r in the format of ZooKeeper's logback.xml, in local time.
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

// printable escapes characters that would end a field or a line. We need it because the
// client chooses its user name.
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

// NodeType returns the znode_type field of a create.
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

// ACLText returns the acl field of a setAcl: all entries concatenated, without a
// separator.
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
