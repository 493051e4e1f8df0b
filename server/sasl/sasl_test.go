package sasl

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

const jaas = `
// who may connect
Client { x.y.Other required user_no="1"; };
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required /* two
       of them */
    user_super="admin\secret"
    # the second
    user_bob="bob=;{}secret" user_empty="";
};
`

func TestParseJAAS(t *testing.T) {
	t.Parallel()
	got, err := ParseJAAS(jaas, "Server")
	want := Users{"super": `admin\secret`, "bob": "bob=;{}secret", "empty": ""}
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("ParseJAAS = %v, %v", got, err)
	}
	for text, part := range map[string]string{
		jaas:                                   `"Client"`,
		"":                                     "no section",
		`Client { a.DigestLoginModule r; };`:   "no user",
		`Client { "unclosed };`:                "line 1",
		"\nClient { /* unclosed };":            "line 2",
		`Client { a.DigestLoginModule user_x;`: "no value",
	} {
		if _, err := ParseJAAS(text, "Client"); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %v does not say %s", text, err, part)
		}
	}
}

// TestResponse is the example of RFC 2831, section 4.
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

// answer builds a client's response to a challenge, with fields replaced.
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
			x := NewExchange(users)
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
				t.Error("a third step was taken")
			}
		})
	}
}

func TestNoncesDiffer(t *testing.T) {
	t.Parallel()
	first, second := NewExchange(nil), NewExchange(nil)
	if first.nonce == second.nonce {
		t.Error("two exchanges have one nonce")
	}
}

func FuzzStep(f *testing.F) {
	f.Add(`username="bob",nonce="x",nc=00000001`)
	f.Add(`a="b\"c",d`)
	f.Add(`"=,=,,`)
	f.Fuzz(func(t *testing.T, s string) {
		x := NewExchange(Users{"bob": "x"})
		if _, _, err := x.Step(nil); err != nil {
			t.Fatal(err)
		}
		if _, user, err := x.Step([]byte(s)); err == nil || user != "" {
			t.Fatalf("%q was let in as %q", s, user)
		}
	})
}

// TestNarrow: the hash is of ISO 8859-1 where that will do.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "bob": "bob", "Jürgen": "J\xfcrgen", "日本": "日本", "\xff": "\xff"} {
		if got := narrow(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
