package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// tokens is a provider that maps each token to its user and the user's groups.
type tokens map[string][]string

func (tokens) Scheme() string { return "token" }

func (t tokens) Authenticate(_ context.Context, r AuthRequest) ([]proto.ID, error) {
	names, ok := t[string(r.Auth)]
	if !ok {
		return nil, errors.New("unknown token")
	}
	var ids []proto.ID
	for _, name := range names {
		ids = append(ids, proto.ID{Scheme: "token", ID: name})
	}
	return ids, nil
}

func ExampleAuthProvider() {
	ctx := context.Background()
	srv, err := Start(ctx, Config{Memory: true, Auth: Auth{Providers: []AuthProvider{
		tokens{"s3cret": {"alice", "group/admins"}},
	}}})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	dial := client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() })
	alice, err := client.Connect(ctx, "127.0.0.1:2181", dial, client.WithAuth("token", []byte("s3cret")))
	if err != nil {
		panic(err)
	}
	defer alice.Close()
	admins := client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "token", ID: "group/admins"}}
	_, err = alice.Create(ctx, "/secrets", nil, client.WithACL(admins))
	fmt.Println("alice:", err)

	stranger, err := client.Connect(ctx, "127.0.0.1:2181", dial)
	if err != nil {
		panic(err)
	}
	defer stranger.Close()
	_, _, err = stranger.Get(ctx, "/secrets")
	fmt.Println("stranger:", err)
	// Output:
	// alice: <nil>
	// stranger: zookeeper: getData /secrets: NoAuth (-102)
}

func TestAuthProvider(t *testing.T) {
	t.Parallel()
	provider := tokens{"a": {"alice", "group"}, "none": nil, "bad": {""}}
	s := startServer(t, func(c *Config) { c.Auth.Providers = []AuthProvider{provider} })
	for token, names := range map[string]string{"a": "token:alice token:group", "none": "", "bad": "", "unknown": ""} {
		w := connect(t, s)
		got := w.call(proto.OpAuth, &proto.AuthPacket{Scheme: "token", Auth: []byte(token)})
		if names == "" {
			if got.Err != proto.ErrAuthFailed {
				t.Errorf("%s: %v", token, got.Err)
			}
			w.wantClosed()
			continue
		}
		if ids := w.identities(); ids != names {
			t.Errorf("%s: %s", token, ids)
		}
		// The scheme auth means both; other clients can't read.
		w.must(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}})
		var resp proto.GetACLResponse
		w.decode(w.must(proto.OpGetACL, &proto.GetACLRequest{Path: "/a"}), &resp)
		if len(resp.ACL) != 2 || resp.ACL[0].ID != (proto.ID{Scheme: "token", ID: "alice"}) {
			t.Errorf("the list is %v", resp.ACL)
		}
		if got := connect(t, s).call(proto.OpGetData, &proto.GetDataRequest{Path: "/a"}); got.Err != proto.ErrNoAuth {
			t.Errorf("a client without an identity reads: %v", got.Err)
		}
	}
	plain := connect(t, startServer(t))
	acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "token", ID: "alice"}}}
	if got := plain.call(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: acl}); got.Err != proto.ErrInvalidACL {
		t.Errorf("without a provider: %v", got.Err)
	}
	if got := plain.call(proto.OpAuth, &proto.AuthPacket{Scheme: "token", Auth: []byte("a")}); got.Err != proto.ErrAuthFailed {
		t.Errorf("without a provider: %v", got.Err)
	}
}

// named wraps a provider to change its name.
type named struct {
	tokens
	scheme string
}

func (n named) Scheme() string { return n.scheme }

func TestAuthProviderSchemes(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"", "a:b", "digest", "world", "super", "x509", "token"} {
		_, err := Start(t.Context(), Config{Memory: true, Auth: Auth{Providers: []AuthProvider{tokens{}, named{scheme: scheme}}}})
		if err == nil || !strings.Contains(err.Error(), "AuthProviders") {
			t.Errorf("%q: %v", scheme, err)
		}
	}
}
