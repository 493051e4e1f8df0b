package membership

import (
	"bytes"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// TestEndpointConflicts: a joining server may not use an address of another server, except
// one that leaves.
func TestEndpointConflicts(t *testing.T) {
	t.Parallel()
	now, err := Parse([]byte("server.1=a:1:2;c:3\nserver.2=b:1:2;c:4\nserver.3=B:1:2;c:5"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		joining, leaving string
		want             proto.Code
	}{
		{"server.4=d:1:2;c:6", "", proto.Ok}, // servers 2 and 3 conflict already
		{"server.4=A:1:3;c:6", "", proto.ErrBadArguments},
		{"server.4=x:1:2|A:1:3;c:6", "", proto.ErrBadArguments},
		{"server.4=x:1:2;c:3", "", proto.ErrBadArguments},
		{"server.4=a:1:3;c:6", "1", proto.Ok},
		{"server.4=b:1:3;c:6", "2", proto.ErrBadArguments},
		{"server.4=b:1:3;c:6", "2,3", proto.Ok},
		{"server.1=a:1:3;c:3", "", proto.Ok},
		{"server.4=d:1:2;c:6,server.5=d:1:3;c:7", "", proto.ErrBadArguments},
		{"server.4=d:1:2;c:6,server.4=e:1:2;c:6,server.5=d:1:3;c:7", "", proto.Ok},
		{"server.1=e:1:2;c:6,server.5=a:1:3;c:7", "", proto.Ok},
	} {
		_, code := now.Next(&proto.ReconfigRequest{Joining: tt.joining, Leaving: tt.leaving, NewMembers: proto.NullString, CurConfigID: -1}, tree.MultiAddress)
		if code != tt.want {
			t.Errorf("%q and without %q: %v, want %v", tt.joining, tt.leaving, code, tt.want)
		}
	}
}

// TestRoleOfSeveralAddresses: the role of a server with several addresses may follow any
// address, and is at the end of the canonical line.
func TestRoleOfSeveralAddresses(t *testing.T) {
	t.Parallel()
	const canonical = "server.1=a:1:2|b:1:2:observer;0.0.0.0:5"
	for _, line := range []string{canonical, "server.1=a:1:2:observer|b:1:2;5", "server.1=a:1:2:OBSERVER|b:1:2:observer;5"} {
		m, err := Parse([]byte(line))
		if err != nil || !m.Members[0].Observer || m.Members[0].Line() != canonical {
			t.Errorf("%s: %v, %+v", line, err, m)
		}
	}
	if _, err := Parse([]byte("server.1=a:1:2:participant|b:1:2:observer;5")); err == nil {
		t.Error("two roles are accepted")
	}
}

// FuzzMembership parses lists of servers, and checks that formatting and parsing a list
// again gives the same list.
func FuzzMembership(f *testing.F) {
	f.Add([]byte("server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:observer\nversion=100000000"))
	f.Add([]byte("server.1=a:1:2|b:3:4;[::1]:5"))
	f.Add([]byte("server.300=a:1:2"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(m.Text())
		if err != nil {
			t.Fatalf("%q became %q: %v", b, m.Text(), err)
		}
		if !bytes.Equal(m.Text(), again.Text()) || again.Version != m.Version || !again.Equal(m) {
			t.Fatalf("%q became %q and %q", b, m.Text(), again.Text())
		}
	})
}
