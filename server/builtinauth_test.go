package server

import (
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
)

// providerConfig returns a server configuration with one of ZooKeeper's providers.
func providerConfig(t *testing.T, class string, lines string) Config {
	t.Helper()
	z, err := zoocfg.ParseText("zoo.cfg", fmt.Sprintf("dataDir=%s\nclientPort=2181\nauthProvider.1=org.apache.zookeeper.server.auth.%s\n%s",
		t.TempDir(), class, lines))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range z.Warnings {
		t.Errorf("%s: a warning: %s", class, w)
	}
	c, err := fromZooCfg(z, allFormats())
	if err != nil {
		t.Fatal(err)
	}
	c.Memory, c.ClientAddr, c.Admin = true, "", nil
	return c
}

// TestBuiltInProviders configures each provider that ZooKeeper 3.9 ships by its class. This
// enables the provider's scheme; by default only two of the schemes exist.
func TestBuiltInProviders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		class, lines, scheme, auth string
		want                       proto.Code
	}{
		{"DigestAuthenticationProvider", "", "digest", "a:b", proto.Ok},
		{"IPAuthenticationProvider", "", "ip", "", proto.Ok},
		{"EnsembleAuthenticationProvider", "", "ensemble", "any", proto.Ok},
		{"EnsembleAuthenticationProvider", "", "ensemble", "", proto.Ok},
		{"EnsembleAuthenticationProvider", "ensembleAuthName=one", "ensemble", "one", proto.Ok},
		{"EnsembleAuthenticationProvider", "ensembleAuthName=one", "ensemble", "", proto.Ok},
		{"KeyAuthenticationProvider", "", "key", "25", proto.Ok},
		{"DigestAuthenticationProvider", "", "ensemble", "any", proto.ErrAuthFailed},
		{"DigestAuthenticationProvider", "", "key", "25", proto.ErrAuthFailed},
	} {
		t.Run(fmt.Sprint(tt.class, tt.lines, tt.scheme, tt.auth), func(t *testing.T) {
			t.Parallel()
			s := startServer(t, func(c *Config) { *c = providerConfig(t, tt.class, tt.lines) })
			if got := connect(t, s).call(proto.OpAuth, &proto.AuthPacket{Scheme: tt.scheme, Auth: []byte(tt.auth)}); got.Err != tt.want {
				t.Errorf("addauth %s %q: %v, want %v", tt.scheme, tt.auth, got.Err, tt.want)
			}
		})
	}
}

// TestKeyProvider repeats ZooKeeper's own test of the provider: any number passes until /key
// contains one, and from then on only its multiples. All clients that pass have the same
// identity.
func TestKeyProvider(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { *c = providerConfig(t, "KeyAuthenticationProvider", "") })
	w := connect(t, s)
	w.must(proto.OpAuth, &proto.AuthPacket{Scheme: "key", Auth: []byte("25")})
	creator := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/abc", Data: []byte("x"), ACL: creator})
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/key", Data: []byte("5"), ACL: proto.OpenACL()})
	for auth, want := range map[string]proto.Code{"25": proto.Ok, "125": proto.Ok, "0": proto.Ok, "-10": proto.Ok,
		"23": proto.ErrAuthFailed, "": proto.ErrAuthFailed, "x": proto.ErrAuthFailed, "5.0": proto.ErrAuthFailed} {
		other := connect(t, s)
		if got := other.call(proto.OpGetData, &proto.GetDataRequest{Path: "/abc"}); got.Err != proto.ErrNoAuth {
			t.Errorf("reading without a key: %v", got.Err)
		}
		if got := other.call(proto.OpAuth, &proto.AuthPacket{Scheme: "key", Auth: []byte(auth)}); got.Err != want {
			t.Errorf("key %q: %v, want %v", auth, got.Err, want)
		} else if want == proto.Ok {
			other.get("/abc", false)
		}
	}
	open := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "key"}}}
	w.must(proto.OpSetACL, &proto.SetACLRequest{Path: "/abc", ACL: open, Version: -1})
	w.set("/key", "0")
	last := connect(t, s)
	last.must(proto.OpAuth, &proto.AuthPacket{Scheme: "key", Auth: []byte("7")})
	last.get("/abc", false)
}
