package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// A client should not be able to fill the audit log with the names it gave itself, and a
// record should still have the client's address.
func TestUserNamesOfTheAuditLogAreBounded(t *testing.T) {
	t.Parallel()
	const maxIdentities, maxIdentityBytes = 256, 16 << 10 // of a connection, as in package server
	ids := []proto.ID{{Scheme: "ip", ID: "10.0.0.1"}}
	for i := range maxIdentities {
		ids = append(ids, proto.ID{Scheme: "digest", ID: fmt.Sprintf("%0200d:hash", i)})
	}
	ids = append(ids, proto.ID{Scheme: "digest", ID: strings.Repeat("u", maxIdentityBytes) + ":hash"})
	for _, some := range [][]proto.ID{ids, {ids[0], ids[len(ids)-1]}} {
		if got := userNames(some); len(got) > 3*MaxUserNames || !strings.HasSuffix(got, ",10.0.0.1") {
			t.Errorf("%d identities: %d bytes of names, the last %q", len(some), len(got), got[max(len(got)-20, 0):])
		}
	}
	if got := userNames([]proto.ID{{Scheme: "digest", ID: "bob:hash"}, ids[0]}); got != "bob,10.0.0.1" {
		t.Error(got)
	}
}
