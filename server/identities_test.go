package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/proto"
)

func digestAuth(user string) *proto.AuthPacket {
	return &proto.AuthPacket{Scheme: "digest", Auth: []byte(user + ":p")}
}

// A client that proves too many identities fails to authenticate; the bound is on
// number and bytes. Repeating the same identity does no harm.
func TestIdentitiesAreBounded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, c := range map[string]struct {
		bytes, most int
	}{"many": {10, schemes.MaxIdentities}, "long": {900 << 10, 1}, "both": {1000, schemes.MaxBytes / 1000}} {
		w := connect(t, s)
		for range 2 * schemes.MaxIdentities {
			w.must(proto.OpAuth, digestAuth("again"))
		}
		n, code := 0, proto.Ok
		for code == proto.Ok && n <= c.most+1 {
			n++
			code = w.call(proto.OpAuth, digestAuth(fmt.Sprintf("%d%s", n, strings.Repeat("u", c.bytes)))).Err
		}
		if code != proto.ErrAuthFailed || n > c.most {
			t.Errorf("%s: identity %d has code %v", name, n, code)
			continue
		}
		w.wantClosed()
	}
}

// Each of many identities should keep its permissions, whether a command carries the
// identities or their fingerprints, and an ACL should get all identities.
func TestManyIdentitiesKeepTheirPermissions(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	owner, many, other := connect(t, s), connect(t, s), connect(t, s)
	owner.must(proto.OpAuth, digestAuth("user77"))
	var all []proto.ID
	for i := range 100 {
		many.must(proto.OpAuth, digestAuth(fmt.Sprint("user", i)))
		id, _ := schemes.DigestID("SHA1", fmt.Sprint("user", i, ":p"))
		all = append(all, proto.ID{Scheme: "digest", ID: id})
	}
	creator := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
	owner.must(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: creator})
	for _, w := range []*wire{owner, many} {
		w.must(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
		w.must(proto.OpMulti, ops(part(proto.OpCreate, &proto.CreateRequest{Path: "/a/b", ACL: creator}), part(proto.OpDelete, &proto.DeleteRequest{Path: "/a/b", Version: -1})))
	}
	if got := other.call(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1}); got.Err != proto.ErrNoAuth {
		t.Errorf("a client without an identity writes: %v", got.Err)
	}
	many.must(proto.OpCreate, &proto.CreateRequest{Path: "/m", ACL: creator})
	many.must(proto.OpMulti, ops(part(proto.OpCreate, &proto.CreateRequest{Path: "/n", ACL: creator})))
	many.must(proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: creator, Version: -1})
	for _, path := range []string{"/m", "/n", "/a"} {
		var got proto.GetACLResponse
		many.decode(many.must(proto.OpGetACL, &proto.GetACLRequest{Path: path}), &got)
		if len(got.ACL) != len(all) {
			t.Errorf("%s: %d entries", path, len(got.ACL))
			continue
		}
		for i := range all {
			if got.ACL[i].ID != all[i] {
				t.Errorf("%s: entry %d is %v, want %v", path, i, got.ACL[i].ID, all[i])
			}
		}
	}
	owner.set("/m", "x")
}
