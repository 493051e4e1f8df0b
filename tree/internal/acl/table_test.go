package acl

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// Different lists with the same hash aren't mixed up.
func TestInternCollisions(t *testing.T) {
	t.Parallel()
	list := func(ip string) []proto.ACL { return []proto.ACL{{ID: proto.ID{Scheme: "ip", ID: ip}}} }
	table := NewTable()
	a := table.Intern(proto.OpenACL())
	b, c := &Entry{hash: a.hash, list: list("::1")}, &Entry{hash: a.hash, list: list("::2")}
	table.Retain(b)
	table.Retain(c)
	if table.Intern(proto.OpenACL()) != a || a.refs != 2 {
		t.Error("not shared")
	}
	table.Release(b) // in the middle
	table.Release(c) // first
	table.Release(a)
	if table.byHash[a.hash] != a || a.next != nil {
		t.Error("the wrong one is gone")
	}
	table.Release(a)
	if len(table.byHash) != 0 {
		t.Error("something is left")
	}
	table.Retain(a)
	if table.Intern(proto.OpenACL()) != a {
		t.Error("does not come back")
	}
}
