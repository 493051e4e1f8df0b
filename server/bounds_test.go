package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// The names that a client gave itself don't fill the audit log, and a record still has
// the client's address.
func TestUserNamesOfTheAuditLogAreBounded(t *testing.T) {
	t.Parallel()
	ids := []proto.ID{{Scheme: "ip", ID: "10.0.0.1"}}
	for i := range maxIdentities {
		ids = append(ids, proto.ID{Scheme: "digest", ID: fmt.Sprintf("%0200d:hash", i)})
	}
	ids = append(ids, proto.ID{Scheme: "digest", ID: strings.Repeat("u", maxIdentityBytes) + ":hash"})
	for _, some := range [][]proto.ID{ids, {ids[0], ids[len(ids)-1]}} {
		if got := userNames(some); len(got) > 3*maxUserNames || !strings.HasSuffix(got, ",10.0.0.1") {
			t.Errorf("%d identities: %d bytes of names, the last %q", len(some), len(got), got[max(len(got)-20, 0):])
		}
	}
	if got := userNames([]proto.ID{{Scheme: "digest", ID: "bob:hash"}, ids[0]}); got != "bob,10.0.0.1" {
		t.Error(got)
	}
}

// A child of the root with a name of a megabyte isn't counted.
func TestLongNamespacesAreNotCounted(t *testing.T) {
	t.Parallel()
	var s namespaces
	if s.find(strings.Repeat("n", maxNamespaceName)) == nil || s.find(strings.Repeat("n", maxNamespaceName+1)) != nil {
		t.Error("the bound of a name is another one")
	}
}

// The server forgets read-only sessions that their clients don't close, but not those
// in use.
func TestLocalSessionsAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(Config{Memory: true}.withDefaults())
	s.clients.locals[1], s.clients.sessions[1] = [proto.PasswordSize]byte{}, new(conn)
	for sid := int64(2); sid < 3*maxLocals; sid++ {
		s.clients.forgetLocal()
		s.clients.locals[sid] = [proto.PasswordSize]byte{}
	}
	if _, ok := s.clients.locals[1]; !ok || len(s.clients.locals) > maxLocals {
		t.Errorf("%d are remembered, the one in use: %v", len(s.clients.locals), ok)
	}
}
