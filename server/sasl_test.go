package server

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
)

// token sends one sasl token and returns the reply.
func (w *wire) token(token string) (proto.Code, []byte) {
	w.t.Helper()
	got := w.call(proto.OpSASL, &proto.SASLRequest{Token: []byte(token)})
	var resp proto.SASLResponse
	w.decode(got, &resp)
	if got.Zxid != 0 {
		w.t.Errorf("zxid %d in the answer to sasl", got.Zxid)
	}
	return got.Err, resp.Token
}

// login authenticates with DIGEST-MD5 and returns the last reply.
func (w *wire) login(user, password string) (proto.Code, []byte) {
	w.t.Helper()
	code, challenge := w.token("")
	if code != proto.Ok || challenge == nil {
		w.t.Fatalf("no challenge but %v %q", code, challenge)
	}
	var nonce string
	for _, f := range strings.Split(string(challenge), ",") {
		if v, ok := strings.CutPrefix(f, "nonce="); ok {
			nonce = strings.Trim(v, `"`)
		}
	}
	sum := func(s string) string {
		h := md5.Sum([]byte(s))
		return hex.EncodeToString(h[:])
	}
	const uri, nc, cnonce = "zookeeper/zk-sasl-md5", "00000001", "abc"
	secret := md5.Sum([]byte(user + ":" + sasl.Realm + ":" + password))
	a1 := sum(string(secret[:]) + ":" + nonce + ":" + cnonce)
	response := sum(a1 + ":" + nonce + ":" + nc + ":" + cnonce + ":auth:" + sum("AUTHENTICATE:"+uri))
	return w.token(fmt.Sprintf(`charset=utf-8,username="%s",realm="%s",nonce="%s",nc=%s,cnonce="%s",digest-uri="%s",maxbuf=65536,response=%s,qop=auth`,
		user, sasl.Realm, nonce, nc, cnonce, uri, response))
}

// startSASL starts a server with the users bob and root; root is the super user.
func startSASL(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	return startServer(t, func(c *Config) {
		c.Auth.SASL = &SASL{Users: sasl.Users{"bob": "secret", "root": "toor"}, SuperUser: "root"}
		if change != nil {
			change(c)
		}
	})
}

func TestSASLGivesAnIdentity(t *testing.T) {
	t.Parallel()
	s := startSASL(t, nil)
	bob := connect(t, s)
	if code, proof := bob.login("bob", "secret"); code != proto.Ok || !strings.HasPrefix(string(proof), "rspauth=") {
		t.Fatalf("%v %q", code, proof)
	}
	if got := bob.identities(); got != "sasl:bob" {
		t.Errorf("identities %q", got)
	}
	acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "sasl", ID: "bob"}}}
	bob.must(proto.OpCreate, &proto.CreateRequest{Path: "/bob", ACL: acl})
	other := connect(t, s)
	if got := other.call(proto.OpGetData, &proto.GetDataRequest{Path: "/bob"}); got.Err != proto.ErrNoAuth {
		t.Errorf("a client without an identity reads: %v", got.Err)
	}
	root := connect(t, s)
	if code, _ := root.login("root", "toor"); code != proto.Ok {
		t.Fatal(code)
	}
	if got := root.identities(); got != "sasl:root super:" {
		t.Errorf("identities %q", got)
	}
	root.set("/bob", "the super user may")
	// One authentication per connection, as in ZooKeeper.
	if code, token := bob.token(""); code != proto.ErrAuthFailed || token != nil {
		t.Errorf("a second authentication: %v %q", code, token)
	}
	bob.wantClosed()
}

func TestSASLFailure(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   proto.Code
	}{
		{"refused", nil, proto.ErrAuthFailed},
		{"allowed", func(c *Config) { c.Auth.SASL.AllowFailed = true }, proto.Ok},
		{"required", func(c *Config) { c.Auth.Require = []string{"sasl"} }, proto.ErrSessionClosedRequireSASL},
		{"required though allowed", func(c *Config) { c.Auth.SASL.AllowFailed, c.Auth.Require = true, []string{"sasl"} }, proto.ErrSessionClosedRequireSASL},
		{"another required", func(c *Config) { c.Auth.Require = []string{"digest"} }, proto.ErrAuthFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startSASL(t, tc.change)
			for _, user := range []string{"bob", "nobody"} {
				w := connect(t, s)
				if code, token := w.login(user, "wrong"); code != tc.want || token != nil {
					t.Errorf("%s: %v with token %q, want %v and null", user, code, token, tc.want)
				}
				if tc.want != proto.Ok {
					w.wantClosed()
				} else if got := w.identities(); got != "" {
					t.Errorf("identities %q", got)
				}
			}
			if n := sourceOf(s).Server().AuthFailed; n != 2 {
				t.Errorf("%d failures counted", n)
			}
		})
	}
}

func TestSASLRequired(t *testing.T) {
	t.Parallel()
	s := startSASL(t, func(c *Config) { c.Auth.Require = []string{"sasl"} })
	w := connect(t, s)
	if code, _ := w.login("bob", "secret"); code != proto.Ok {
		t.Fatal(code)
	}
	w.create("/a", nil, proto.ModePersistent)
	for _, op := range []proto.Op{proto.OpPing, proto.OpGetData, proto.OpCloseSession, proto.OpCreate} {
		w := connect(t, s)
		xid := w.send(op, nil)
		if got := w.recv(); got.Xid != xid || got.Err != proto.ErrSessionClosedRequireSASL || got.Zxid != 0 || len(got.body) != 0 {
			t.Errorf("%v: %+v", op, got)
		}
		w.wantClosed()
	}
}

func TestSASLFromZooCfg(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const module = "org.apache.zookeeper.server.auth.DigestLoginModule required "
	jaas := file("jaas", "Server { "+module+"user_bob=\"secret\"; };\nOther { "+module+"user_eve=\"e\"; };")
	quorum := file("quorum", "QuorumServer { "+module+"user_bob=\"secret\"; };")
	kerberos := file("kerberos", "Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };")
	for _, tc := range []struct {
		text   string
		users  string // "": no SASL
		fails  string
		scheme bool
		need   string
	}{
		{"", "", "", false, ""},
		{"java.security.auth.login.config=" + jaas, "bob", "", true, ""},
		{"java.security.auth.login.config=" + jaas + "\nsasl.serverconfig=Other", "eve", "", true, ""},
		{"java.security.auth.login.config=" + jaas + "\nsasl.serverconfig=Missing", "", "Missing", false, ""},
		{"java.security.auth.login.config=" + jaas + "\nsessionRequireClientSASLAuth=true\nallowSaslFailedClients=true\nsuperUser=bob", "bob", "", true, "sasl"},
		{"java.security.auth.login.config=" + quorum, "", "", false, ""},
		{"java.security.auth.login.config=" + quorum + "\nsessionRequireClientSASLAuth=true", "", "Server", false, ""},
		{"java.security.auth.login.config=" + kerberos, "", "DigestLoginModule", false, ""},
		{"java.security.auth.login.config=" + dir + "/nowhere", "", "nowhere", false, ""},
		{"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "", "", true, ""},
		{"enforce.auth.enabled=true\nenforce.auth.schemes=digest,ip", "", "", false, "digest,ip"},
	} {
		z, err := zoocfg.ParseText("zoo.cfg", "dataDir=/tmp/x\nclientPort=0\n"+tc.text+"\n")
		if err != nil {
			t.Fatalf("%s: %v", tc.text, err)
		}
		c, err := fromZooCfg(z, allFormats())
		if tc.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: %v, want %q", tc.text, err, tc.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		var users []string
		if c.Auth.SASL != nil {
			for u := range c.Auth.SASL.Users {
				users = append(users, u)
			}
			if c.Auth.SASL.SuperUser != z.Auth.SASLSuperUser || c.Auth.SASL.AllowFailed != z.Auth.AllowSASLFailed {
				t.Errorf("%s: %+v", tc.text, c.Auth.SASL)
			}
		}
		if got := strings.Join(users, ","); got != tc.users || (c.Auth.SASLScheme || c.Auth.SASL != nil) != tc.scheme {
			t.Errorf("%s: users %q, scheme %v", tc.text, got, c.Auth.SASLScheme)
		}
		if got := strings.Join(c.Auth.Require, ","); got != tc.need {
			t.Errorf("%s: required %q", tc.text, got)
		}
	}
}
