package sasl

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestResponse tests the example of RFC 2831, section 4.
func TestResponse(t *testing.T) {
	t.Parallel()
	f := map[string]string{
		"username": "chris", "realm": "elwood.innosoft.com", "nonce": "OA6MG9tEQGm2hh", "nc": "00000001",
		"cnonce": "OA6MHXh6VqTrRk", "digest-uri": "imap/elwood.innosoft.com",
	}
	if got := response(f, "secret", "AUTHENTICATE"); got != "d388dad90d4bbd760a152321f2143af7" {
		t.Errorf("client's response %s", got)
	}
	if got := response(f, "secret", ""); got != "ea40f60335c427b5527b84dbabcdfffd" {
		t.Errorf("server's response %s", got)
	}
}

// answer returns a client's response to a challenge, with the fields in change
// replaced.
func answer(t *testing.T, challenge, user, password string, change map[string]string) string {
	t.Helper()
	f, err := directives(challenge)
	if err != nil {
		t.Fatal(err)
	}
	f["username"], f["cnonce"], f["nc"], f["digest-uri"] = user, "cn", "00000001", "zookeeper/zk-sasl-md5"
	maps.Copy(f, change)
	if _, set := change["response"]; !set {
		f["response"] = response(f, password, "AUTHENTICATE")
	}
	var parts []string
	for k, v := range f {
		if k == "nc" || k == "response" || k == "qop" {
			parts = append(parts, k+"="+v)
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=%q", k, v))
	}
	return strings.Join(parts, ",")
}

func TestExchange(t *testing.T) {
	t.Parallel()
	users := Users{"bob": "secret"}
	tests := []struct {
		name, user, password string
		change               map[string]string
		ok                   bool
	}{
		{"right", "bob", "secret", nil, true},
		{"own authzid", "bob", "secret", map[string]string{"authzid": "bob"}, true},
		{"wrong password", "bob", "Secret", nil, false},
		{"unknown user", "eve", "", nil, false},
		{"foreign authzid", "bob", "secret", map[string]string{"authzid": "super"}, true},
		{"replayed nonce", "bob", "secret", map[string]string{"nonce": "old"}, false},
		{"nonce count", "bob", "secret", map[string]string{"nc": "00000002"}, false},
		{"integrity", "bob", "secret", map[string]string{"qop": "auth-int"}, false},
		{"other service", "bob", "secret", map[string]string{"digest-uri": "imap/x"}, false},
		{"no response", "bob", "secret", map[string]string{"response": ""}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := NewServer(users)
			challenge, user, err := x.Step(nil)
			if err != nil || user != "" {
				t.Fatal(user, err)
			}
			out, user, err := x.Step([]byte(answer(t, string(challenge), tt.user, tt.password, tt.change)))
			if tt.ok != (err == nil) || tt.ok != (user == "bob") || tt.ok != strings.HasPrefix(string(out), "rspauth=") {
				t.Fatalf("out %q, user %q, error %v", out, user, err)
			}
			if !tt.ok && !errors.Is(err, ErrRefused) {
				t.Fatalf("error %v", err)
			}
			if _, _, err := x.Step([]byte("again")); err == nil {
				t.Error("a third step was accepted")
			}
		})
	}
}

func TestNoncesDiffer(t *testing.T) {
	t.Parallel()
	first, second := NewServer(nil), NewServer(nil)
	if first.nonce == second.nonce {
		t.Error("two exchanges have one nonce")
	}
}

func FuzzStep(f *testing.F) {
	f.Add(`username="bob",nonce="x",nc=00000001`)
	f.Add(`a="b\"c",d`)
	f.Add(`"=,=,,`)
	f.Fuzz(func(t *testing.T, s string) {
		x := NewServer(Users{"bob": "x"})
		if _, _, err := x.Step(nil); err != nil {
			t.Fatal(err)
		}
		if _, user, err := x.Step([]byte(s)); err == nil || user != "" {
			t.Fatalf("%q was authenticated as %q", s, user)
		}
	})
}

// TestNarrow tests that text is hashed as ISO 8859-1 if possible.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "bob": "bob", "Jürgen": "J\xfcrgen", "日本": "日本", "\xff": "\xff"} {
		if got := narrow(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestClient runs both sides. They agree if they have the same password and, between
// servers, the same purpose. The client detects a server that doesn't know the
// password.
func TestClient(t *testing.T) {
	t.Parallel()
	users := Users{"bob": "secret", `q"u\o=,te`: "ü,日"}
	for _, tt := range []struct {
		name    string
		client  *Client
		server  *Server
		refused bool
	}{
		{"a client", NewClient("bob", "secret"), NewServer(users), false},
		{"quotes", NewClient(`q"u\o=,te`, "ü,日"), NewServer(users), false},
		{"wrong password", NewClient("bob", "Secret"), NewServer(users), true},
		{"no such user", NewClient("eve", ""), NewServer(users), true},
		{"a server", NewQuorumClient("bob", "secret", "p"), NewQuorumServer(users, "p"), false},
		{"another purpose", NewQuorumClient("bob", "secret", "p"), NewQuorumServer(users, "q"), true},
		{"part of the purpose", NewQuorumClient("bob", "secret", "pq"), NewQuorumServer(users, "p"), true},
		{"a server where clients connect", NewQuorumClient("bob", "secret", "p"), NewServer(users), true},
		{"a client where servers connect", NewClient("bob", "secret"), NewQuorumServer(users, "p"), true},
	} {
		first, done, err := tt.client.Next(nil)
		if err != nil || done || len(first) > 0 {
			t.Fatalf("%s: begins with %q, %t, %v", tt.name, first, done, err)
		}
		challenge, _, _ := tt.server.Step(first)
		answer, done, err := tt.client.Next(challenge)
		if err != nil || done {
			t.Fatalf("%s: %t, %v", tt.name, done, err)
		}
		proof, user, err := tt.server.Step(answer)
		if tt.refused != errors.Is(err, ErrRefused) || tt.refused == (user == tt.client.user) {
			t.Errorf("%s: the server knows %q: %v", tt.name, user, err)
		}
		if out, done, err := tt.client.Next(proof); tt.refused != errors.Is(err, ErrServer) || !done || out != nil {
			t.Errorf("%s: the client: %q, %t, %v", tt.name, out, done, err)
		}
	}
}

// TestClientRefuses tests that the client refuses a challenge that isn't DIGEST-MD5,
// and a server that accepts it without knowing the password.
func TestClientRefuses(t *testing.T) {
	t.Parallel()
	for _, challenge := range []string{"", "nonsense", `nonce="x"`, `nonce="x",algorithm=md5`, `algorithm=md5-sess`, `nonce="x`} {
		c := NewClient("bob", "secret")
		_, _, _ = c.Next(nil)
		if out, _, err := c.Next([]byte(challenge)); err == nil {
			t.Errorf("%q is answered with %q", challenge, out)
		}
	}
	for _, password := range []string{"secret", "other"} {
		c := NewClient("bob", "secret")
		_, _, _ = c.Next(nil)
		out, _, _ := c.Next([]byte(`realm="a",realm="b",nonce="x",algorithm=md5-sess`))
		f, err := directives(string(out))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Next([]byte(proofPrefix + response(f, password, ""))); (err == nil) != (password == "secret") {
			t.Errorf("a server that knows %q: %v", password, err)
		}
	}
}
