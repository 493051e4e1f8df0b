package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

func list(entries ...string) []proto.ACL {
	acl := []proto.ACL{}
	for _, e := range entries {
		f := strings.SplitN(e, " ", 3)
		var a proto.ACL
		fmt.Sscan(f[0], (*int32)(&a.Perms))
		a.ID = proto.ID{Scheme: f[1], ID: f[2]}
		for _, s := range []*string{&a.ID.Scheme, &a.ID.ID} {
			if *s == "null" {
				*s = proto.NullString
			}
		}
		acl = append(acl, a)
	}
	return acl
}

// The transcript has ZooKeeper's own results for most of these. This test adds the
// schemes that the recorded server hadn't loaded, and the expansions.
func TestNormalizeACL(t *testing.T) {
	t.Parallel()
	ids := []proto.ID{{Scheme: "ip", ID: "1.2.3.4"}, {Scheme: "digest", ID: "a:1"}, {Scheme: "super"}, {Scheme: "digest", ID: "b:2"}, {Scheme: "x509", ID: "CN=c"}, {Scheme: "sasl", ID: "d"}}
	const all = SchemeX509 | SchemeSASL
	bad, stumble := list("0 ErrInvalidACL x"), list("0 ErrMarshalling x")
	for _, c := range []struct {
		in   []proto.ACL
		p    Policy
		want []proto.ACL
	}{
		{nil, 0, bad},
		{list(), 0, bad},
		{list("31 world anyone", "31 world anyone", "1 world anyone"), 0, list("31 world anyone", "1 world anyone")},
		{list("31 auth x"), 0, list("31 digest a:1", "31 digest b:2")},
		{list("31 auth x"), all, list("31 digest a:1", "31 digest b:2", "31 x509 CN=c", "31 sasl d")},
		{list("1 ip 1.2.3.4", "2 auth null", "4 world anyone"), SchemeSASL, list("1 ip 1.2.3.4", "2 digest a:1", "2 digest b:2", "2 sasl d", "4 world anyone")},
		{list("31 x509 CN=c"), 0, bad},
		{list("31 x509 CN=c"), all, list("31 x509 CN=c")},
		{list("31 x509 null"), all, stumble},
		{list("31 x509 null"), 0, bad},
		{list("31 x509 CN=c, O=\"x, y\\\"\"; 1.2.3=7 + oid.2.5=x"), all, list("31 x509 CN=c, O=\"x, y\\\"\"; 1.2.3=7 + oid.2.5=x")},
		{list("31 x509 c"), all, bad},
		{list("31 x509 CN=c,"), all, bad},
		{list("31 x509 FOO=c"), all, bad},
		{list("31 x509 3.1=c"), all, bad},
		{list("31 x509 "), all, list("31 x509 ")},
		{list("31 sasl user"), all, list("31 sasl user")},
		{list("31 sasl user/host@REALM"), all, list("31 sasl user/host@REALM")},
		{list("31 sasl user@a@b"), all, bad},
		{list("31 sasl a/b/c@R"), all, bad},
		{list("31 sasl null"), all, stumble},
		{list("31 sasl user"), 0, bad},
		{list("31 super x"), all, bad},
		{list("31 world anyone", "31 null x"), 0, stumble},
		{list("31 world anyone", "1 null x"), 0, bad},
		{list("31 world anyone", "31 world null"), 0, stumble},
	} {
		got, code := NormalizeACL(c.in, ids, c.p)
		switch code {
		case proto.ErrInvalidACL:
			got = bad
		case proto.ErrMarshalling:
			got = stumble
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q under %b: %q %v instead of %q", c.in, c.p, got, code, c.want)
		}
	}
	if _, code := NormalizeACL(list("31 auth x"), ids[:1], all); code != proto.ErrInvalidACL {
		t.Errorf("auth without an identity: %v", code)
	}
	if _, code := NormalizeACL(list("31 auth x"), ids[4:], 0); code != proto.ErrInvalidACL {
		t.Errorf("auth without a loaded scheme: %v", code)
	}
}

// The two ways to drop duplicates should give the same result for every list.
func TestDropDuplicates(t *testing.T) {
	t.Parallel()
	g := newGenerator(1)
	codes := map[proto.Code]int{}
	for range 20000 {
		var acl []proto.ACL
		for range g.Intn(8) {
			acl = append(acl, proto.ACL{Perms: proto.Perms(g.Intn(3)), ID: proto.ID{
				Scheme: pick(g, "a", "b", "c", "d", "e", proto.NullString), ID: pick(g, "x", "y", "z", "w", proto.NullString, "\x00"),
			}})
		}
		few, c1 := dropDuplicates(nil, acl)
		many, c2 := dropManyDuplicates(nil, acl)
		codes[c1]++
		if c1 != c2 || c1 == proto.Ok && !slices.Equal(few, many) {
			t.Fatalf("%q: %q %v and %q %v", acl, few, c1, many, c2)
		}
	}
	if codes[proto.Ok] < 1000 || codes[proto.ErrMarshalling] < 1000 {
		t.Errorf("too one-sided: %v", codes)
	}
	long := make([]proto.ACL, 80_000)
	for i := range long {
		long[i] = proto.ACL{Perms: proto.Perms(i), ID: proto.ID{Scheme: "world", ID: "anyone"}}
	}
	if got, code := NormalizeACL(long, nil, 0); code != proto.Ok || len(got) != len(long) {
		t.Errorf("a long list: %d entries, %v", len(got), code)
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		acl   []proto.ACL
		perms proto.Perms
		id    string
		want  bool
	}{
		{nil, 31, "ip 1.2.3.4", true},
		{list("1 world anyone"), 1, "ip 1.2.3.4", true},
		{list("1 world anyone"), 2, "ip 1.2.3.4", false},
		{list("1 world anyone"), 1 | 16, "ip 1.2.3.4", true},
		{list("0 world anyone"), 1, "super x", true},
		{list("31 digest a:1"), 1, "digest a:1", true},
		{list("31 digest a:1"), 1, "digest a:2", false},
		{list("31 digest a:1"), 1, "sasl a:1", false},
		{list("31 sasl a"), 8, "sasl a", true},
		{list("31 x509 CN=a"), 8, "x509 CN=a", true},
		{list("31 world other"), 1, "world other", true}, // cannot be stored by a client
		{list("31 ip 1.2.3.4"), 1, "ip 1.2.3.4", true},
		{list("31 ip 1.2.3.4"), 1, "ip 1.2.3.5", false},
		{list("31 ip 1.2.3.0/30"), 1, "ip 1.2.3.3", true},
		{list("31 ip 1.2.3.0/30"), 1, "ip 1.2.3.4", false},
		{list("31 ip 1.2.3.0/0"), 1, "ip 9.9.9.9", true},
		{list("31 ip 1.2.3.0/0"), 1, "ip ::1", false},
		{list("31 ip ::/0"), 1, "ip 0:0:0:0:0:0:0:1", true},
		{list("31 ip fe80::/10"), 1, "ip febf:0:0:0:0:0:0:1", true},
		{list("31 ip fe80::/10"), 1, "ip fec0:0:0:0:0:0:0:1", false},
		{list("31 ip garbage"), 1, "ip garbage", false},
		{list("31 ip 1.2.3.4"), 1, "ip garbage", false},
		{list("31 ip 1.2.3.4/99999999999"), 1, "ip 1.2.3.4", false},
	} {
		id := list("0 " + c.id)[0].ID
		if got := Allowed(c.acl, c.perms, []proto.ID{id}); got != c.want {
			t.Errorf("%q asks %v of %v: %v", c.id, c.perms, c.acl, got)
		}
	}
}

func TestRedactACL(t *testing.T) {
	t.Parallel()
	in := list("31 digest u:secret:s", "1 digest u", "1 ip 1.2.3.4")
	if got := RedactACL(in); !slices.Equal(got, list("31 digest u:x", "1 digest u", "1 ip 1.2.3.4")) {
		t.Errorf("got %v", got)
	}
	if in[0].ID.ID != "u:secret:s" {
		t.Error("the list itself was changed")
	}
}

// TestAuthIsBounded: entries of scheme auth should not multiply a request without limit.
func TestAuthIsBounded(t *testing.T) {
	t.Parallel()
	ids := make([]proto.ID, 64)
	for i := range ids {
		ids[i] = proto.ID{Scheme: "digest", ID: fmt.Sprint("u:", i)}
	}
	list := make([]proto.ACL, MaxExpanded/len(ids))
	for i := range list {
		list[i] = proto.ACL{Perms: proto.Perms(i + 1), ID: proto.ID{Scheme: "auth"}}
	}
	if got, code := NormalizeACL(list, ids, 0); code != proto.Ok || len(got) != MaxExpanded {
		t.Errorf("%v, %d entries", code, len(got))
	}
	list = append(list, proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth", ID: "again"}})
	if _, code := NormalizeACL(list, ids, 0); code != proto.ErrInvalidACL {
		t.Errorf("one more: %v", code)
	}
}
