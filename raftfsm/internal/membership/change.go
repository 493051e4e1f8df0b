package membership

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Next returns the membership that a reconfig asks for, or an error code. The
// transaction supplies the version.
func (m *List) Next(q *proto.ReconfigRequest, policy tree.Policy) (*List, proto.Code) {
	out, code := m.Asked(q, policy)
	if code == proto.Ok && m.Conflict(out) != nil {
		return nil, proto.ErrBadArguments
	}
	return out, code
}

// Asked is Next without the check of the addresses.
func (m *List) Asked(q *proto.ReconfigRequest, policy tree.Policy) (*List, proto.Code) {
	lone := policy&tree.LoneVoter != 0
	out, code := m.changed(q)
	if q.NewMembers != proto.NullString {
		out, code = wholeMembership(q.NewMembers, lone)
	}
	if code != proto.Ok {
		return nil, code
	}
	if policy&tree.MultiAddress == 0 && slices.ContainsFunc(out.Members, func(m Member) bool { return len(m.Alternates) > 0 }) {
		return nil, proto.ErrBadArguments
	}
	least := 2
	if lone {
		least = 1
	}
	if out.Voters() < least || !out.replicable() {
		return nil, proto.ErrBadArguments
	}
	return out, proto.Ok
}

// replicable reports whether all servers read the same list from m's text.
func (m *List) replicable() bool {
	text := m.Text()
	again, err := parseList(text)
	return err == nil && len(text) <= MaxListBytes && bytes.Equal(again.Text(), text)
}

// TooLong reports whether a reconfig has more text or more servers than a list may have.
// It is cheap for any request.
func TooLong(q *proto.ReconfigRequest) bool {
	if len(q.Joining)+len(q.Leaving)+len(q.NewMembers) > MaxListBytes {
		return true
	}
	return parts(q.Joining, ",") > MaxServers || parts(q.Leaving, ",") > MaxServers ||
		parts(q.NewMembers, ",\n") > MaxServers+1 // with the line of the version
}

// parts returns the number of parts of s that are not blank.
func parts(s, separators string) (n int) {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if strings.TrimSpace(part) != "" {
			n++
		}
	}
	return n
}

// wholeMembership parses a list that replaces the current list. For a list that would be
// invalid in a configuration file, ZooKeeper returns a stray MarshallingError.
func wholeMembership(list string, lone bool) (*List, proto.Code) {
	out, err := parseList([]byte(strings.ReplaceAll(list, ",", "\n")))
	if err != nil {
		return nil, proto.ErrBadArguments
	}
	out.Version = 0
	for i := range out.Members {
		out.Members[i].named = true
	}
	observers := len(out.Members) - out.Voters()
	switch {
	case out.Voters() == 0 && (lone || observers > 0), out.Voters() == 1 && !lone && observers > 0:
		return nil, proto.ErrMarshalling
	}
	return out, proto.Ok
}

func (m *List) changed(q *proto.ReconfigRequest) (*List, proto.Code) {
	out := &List{Members: slices.Clone(m.Members)}
	leaving := make(map[int64]bool)
	for _, id := range list(q.Leaving) {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return nil, proto.ErrMarshalling // ZooKeeper throws a stray NumberFormatException here
		}
		leaving[n] = true
	}
	out.Members = slices.DeleteFunc(out.Members, func(m Member) bool { return leaving[int64(m.ID)] })
	users := make(map[string]int) // servers by endpoint
	for i := range out.Members {
		out.Members[i].use(users, 1)
	}
	for _, joiner := range list(q.Joining) {
		key, value, ok := strings.Cut(joiner, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" || value == "" {
			return nil, proto.ErrBadArguments
		}
		id, err := strconv.ParseInt(key[strings.LastIndexByte(key, '.')+1:], 10, 64) // the part before the dot doesn't matter
		if err != nil {
			return nil, proto.ErrMarshalling // as above
		}
		s, err := parseServer(fmt.Sprint("server.", id), value)
		if err != nil || s.ClientAddr == "" {
			return nil, proto.ErrBadArguments
		}
		s.named = true
		if old := out.Member(s.ID); old != nil {
			old.use(users, -1)
			out.Members = slices.DeleteFunc(out.Members, func(m Member) bool { return m.ID == s.ID })
		}
		// As in ZooKeeper, only the addresses of a joining server are checked.
		if slices.ContainsFunc(s.endpoints(), func(e string) bool { return users[e] > 0 }) {
			return nil, proto.ErrBadArguments
		}
		s.use(users, 1)
		out.Members = append(out.Members, s)
	}
	out.sort()
	return out, proto.Ok
}

// list splits a comma-separated list like ZooKeeper: it trims blanks and ignores empty
// parts, and null means no list.
func list(s string) []string {
	if s == proto.NullString {
		return nil
	}
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// differences returns the joining and leaving members of a reconfig from m to another
// list.
func (m *List) differences(to *List) (joining []Member, leaving []uint64) {
	for _, want := range to.Members {
		if have := m.Member(want.ID); have == nil || !have.Same(&want) {
			joining = append(joining, want)
		}
	}
	for _, have := range m.Members {
		if to.Member(have.ID) == nil {
			leaving = append(leaving, have.ID)
		}
	}
	return joining, leaving
}

// Equal reports whether two lists have the same members.
func (m *List) Equal(o *List) bool {
	joining, leaving := m.differences(o)
	return len(joining)+len(leaving) == 0
}

// ReconfigLine returns the zkCli.sh command that changes m to the list.
func (m *List) ReconfigLine(to *List, clientPort int) string {
	joining, leaving := m.differences(to)
	words := []string{"reconfig"}
	if len(leaving) > 0 {
		words = append(words, "-remove", strings.Trim(strings.ReplaceAll(fmt.Sprint(leaving), " ", ","), "[]"))
	}
	var lines []string
	for i := range joining {
		lines = append(lines, joining[i].ReconfigLine(clientPort))
	}
	if len(lines) > 0 {
		words = append(words, "-add", strings.Join(lines, ","))
	}
	return strings.Join(words, " ")
}
