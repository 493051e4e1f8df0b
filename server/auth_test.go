package server

import (
	"testing"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/proto"
)

func TestAuthSchemes(t *testing.T) {
	t.Parallel()
	super, err := schemes.DigestID("SHA1", "super:secret")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(c *Config) { c.Auth.SuperDigest = super })
	for _, c := range []struct {
		scheme, auth string
		null         bool
		want         []proto.ID // in addition to ip; nil: refused
	}{
		{scheme: "digest", auth: "u:p", want: []proto.ID{{Scheme: "digest", ID: "u"}}},
		{scheme: "digest", auth: "plain", want: []proto.ID{{Scheme: "digest", ID: "plain"}}},
		{scheme: "digest", auth: "super:secret", want: []proto.ID{{Scheme: "super"}, {Scheme: "digest", ID: "super"}}},
		{scheme: "digest", auth: "\xff:p", want: []proto.ID{{Scheme: "digest", ID: "\ufffd"}}},
		{scheme: "ip", auth: "1.2.3.4", want: []proto.ID{}},
		{scheme: "digest", null: true},
		{scheme: "world"}, {scheme: "auth"}, {scheme: "super"}, {scheme: "sasl"}, {scheme: "ensemble"}, {scheme: "nonsense"}, {scheme: proto.NullString},
	} {
		w := connect(t, s)
		auth := []byte(c.auth)
		if c.null {
			auth = nil
		}
		got := w.call(proto.OpAuth, &proto.AuthPacket{Scheme: c.scheme, Auth: auth})
		if got.Zxid != 0 || len(got.body) != 0 {
			t.Errorf("%+v: zxid %d and %d bytes", c, got.Zxid, len(got.body))
		}
		if c.want == nil {
			if got.Err != proto.ErrAuthFailed {
				t.Errorf("%+v: %v", c, got.Err)
			}
			w.wantClosed()
			continue
		}
		w.must(proto.OpAuth, &proto.AuthPacket{Scheme: c.scheme, Auth: auth}) // a repetition changes nothing
		var who proto.WhoAmIResponse
		w.decode(w.must(proto.OpWhoAmI, nil), &who)
		want := append([]proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}, c.want...)
		if len(who.IDs) != len(want) {
			t.Errorf("%+v: %+v", c, who.IDs)
			continue
		}
		for i := range want {
			if who.IDs[i] != want[i] {
				t.Errorf("%+v: %+v, want %+v", c, who.IDs, want)
			}
		}
	}
}

func TestGetACLHidesHashes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	owner, other := connect(t, s), connect(t, s)
	owner.must(proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("u:p")})
	owner.must(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: []proto.ACL{
		{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}},
		{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}})
	for w, hidden := range map[*wire]bool{owner: false, other: true} {
		var resp proto.GetACLResponse
		w.decode(w.must(proto.OpGetACL, &proto.GetACLRequest{Path: "/a"}), &resp)
		if got := resp.ACL[0].ID.ID == "u:x"; got != hidden {
			t.Errorf("hash hidden: %v, want %v: %+v", got, hidden, resp.ACL)
		}
	}
}

func TestAuthenticationCanBeRequired(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Auth.Require = []string{"digest"} })
	w := connect(t, s)
	if got := w.call(proto.OpGetData, &proto.GetDataRequest{Path: "/"}); got.Err != proto.ErrSessionClosedRequireSASL || got.Zxid != 0 {
		t.Errorf("unauthenticated: %v, zxid %d", got.Err, got.Zxid)
	}
	w.wantClosed()
	w = connect(t, s)
	w.must(proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("u:p")})
	w.get("/", false)
}

func TestSASLWithoutConfigurationIsANullToken(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	var resp proto.SASLResponse
	got := w.must(proto.OpSASL, &proto.SASLRequest{Token: []byte("x")})
	if w.decode(got, &resp); resp.Token != nil || got.Zxid != 0 {
		t.Errorf("%+v %q", got.ReplyHeader, resp.Token)
	}
	w.send(proto.OpSASL, &proto.SASLRequest{})
	w.wantClosed()
}

// A name that isn't UTF-8 must not turn into a null name.
func TestDigestOfBytes(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	w.must(proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("\xff:\xff")})
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}})
	var resp proto.GetACLResponse
	w.decode(w.must(proto.OpGetACL, &proto.GetACLRequest{Path: "/a"}), &resp)
	if want := "\ufffd:ipNoT9MRIoSM4DrYkmqaDGEYOsE="; len(resp.ACL) != 1 || resp.ACL[0].ID.ID != want {
		t.Errorf("%+v, want %s", resp.ACL, want)
	}
}

// A client that names another ensemble is only disconnected, so that it tries the next
// server.
func TestEnsembleNames(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Auth.EnsembleNames = []string{"one", "two"} })
	w := connect(t, s)
	w.must(proto.OpAuth, &proto.AuthPacket{Scheme: "ensemble", Auth: []byte("two")})
	w.must(proto.OpAuth, &proto.AuthPacket{Scheme: "ensemble"})
	w.send(proto.OpAuth, &proto.AuthPacket{Scheme: "ensemble", Auth: []byte("three")})
	w.wantClosed()
}

func TestAnUnknownDigestAlgorithmIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Config{Memory: true, Auth: Auth{DigestAlg: "CRC32"}}); err == nil {
		t.Error("started with CRC32")
	}
}
