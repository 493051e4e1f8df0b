package server

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// quorumJAAS is a JAAS file as in ZooKeeper's guide.
const quorumJAAS = `QuorumServer {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       user_zk="secret" user_old="before";
};
QuorumLearner {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       username="zk"
       password="secret";
};
Kerberos { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };
Nobody { org.apache.zookeeper.server.auth.DigestLoginModule required; };
`

// threeServers returns the start of a zoo.cfg of server 1, with a JAAS file.
func threeServers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"jaas.conf": quorumJAAS, "myid": "1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("dataDir=%s\nclientPort=0\ninitLimit=5\nsyncLimit=5\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n", dir)
}

// jaasOf returns the line that names the JAAS file next to such a zoo.cfg.
func jaasOf(cfg string) string {
	_, dir, _ := strings.Cut(cfg, "dataDir=")
	dir, _, _ = strings.Cut(dir, "\n")
	return "java.security.auth.login.config=" + dir + "/jaas.conf\n"
}

func TestQuorumSASLFromZooCfg(t *testing.T) {
	t.Parallel()
	three := threeServers(t)
	three += jaasOf(three)
	const enable = "quorum.auth.enableSasl=true\n"
	known := QuorumSASL{Users: sasl.Users{"zk": "secret", "old": "before"}, User: "zk", Password: "secret"}
	for _, tc := range []struct {
		text string
		want *QuorumSASL
		says string // part of the error
	}{
		{text: three},
		{text: three + "quorum.auth.enableSasl=false\n"},
		{text: three + enable, want: &known},
		{text: three + enable + "quorum.auth.learnerRequireSasl=true\n", want: &QuorumSASL{LearnerRequire: true}},
		{text: three + enable + "quorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\n",
			want: &QuorumSASL{LearnerRequire: true, ServerRequire: true}},
		{text: "dataDir=/tmp/x\nclientPort=0\n" + enable}, // standalone, as in ZooKeeper
		{text: threeServers(t) + enable, says: "quorum.auth.enableSasl: java.security.auth.login.config is not set: expected the JAAS file with the sections QuorumServer and QuorumLearner"},
		{text: threeServers(t) + enable + "java.security.auth.login.config=/no/such/file\n", says: "/no/such/file"},
		{text: three + enable + "quorum.auth.server.saslLoginContext=Other\n", says: `quorum.auth.server.saslLoginContext: `},
		{text: three + enable + "quorum.auth.server.saslLoginContext=Other\n", says: `jaas.conf: JAAS configuration has no section "Other"`},
		{text: three + enable + "quorum.auth.learner.saslLoginContext=Other\n", says: `quorum.auth.learner.saslLoginContext: `},
		{text: three + enable + "quorum.auth.learner.saslLoginContext=\n", says: `no section ""`},
		{text: three + enable + "quorum.auth.server.saslLoginContext=Kerberos\n", says: `section "Kerberos" does not use DigestLoginModule`},
		{text: three + enable + "quorum.auth.learner.saslLoginContext=Kerberos\n", says: `section "Kerberos" does not use DigestLoginModule`},
		{text: three + enable + "quorum.auth.server.saslLoginContext=Nobody\n", says: `section "Nobody" names no user`},
		{text: three + enable + "quorum.auth.learner.saslLoginContext=Nobody\n", says: `section "Nobody" has no username`},
	} {
		z, err := zoocfg.ParseText("zoo.cfg", tc.text)
		if err != nil {
			t.Fatalf("%s: %v", tc.text, err)
		}
		c, err := fromZooCfg(z, allFormats())
		switch got := c.Quorum.SASL; {
		case tc.says != "":
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v, want %q", tc.text, err, tc.says)
			}
		case err != nil:
			t.Errorf("%s: %v", tc.text, err)
		case tc.want == nil || got == nil:
			if got != tc.want {
				t.Errorf("%s: %+v", tc.text, got)
			}
		case !maps.Equal(got.Users, known.Users) || got.User != known.User || got.Password != known.Password ||
			got.LearnerRequire != tc.want.LearnerRequire || got.ServerRequire != tc.want.ServerRequire:
			t.Errorf("%s: %+v", tc.text, got)
		}
	}
}

// TestQuorumSASLOfAProgram: settings that an embedding program must not combine.
func TestQuorumSASLOfAProgram(t *testing.T) {
	t.Parallel()
	users := sasl.Users{"zk": "secret"}
	for want, q := range map[string]*QuorumSASL{
		"Users is empty":                      {User: "zk", Password: "secret"},
		"User and Password":                   {Users: users, User: "zk"},
		"User and Password are not":           {Users: users, Password: "secret"},
		"ServerRequire needs LearnerRequire:": {Users: users, User: "zk", Password: "secret", ServerRequire: true},
	} {
		_, err := Start(t.Context(), Config{Memory: true, Quorum: Quorum{SASL: q}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
}

// TestQuorumSASL runs an ensemble that requires SASL, and connects to it as a stranger.
// Without the password it should get nothing on any kind of stream, whatever identity it
// claims.
func TestQuorumSASL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		three := threeServers(t)
		z, err := zoocfg.ParseText("zoo.cfg", three+jaasOf(three)+
			"quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\n")
		if err != nil {
			t.Fatal(err)
		}
		fromFile, err := fromZooCfg(z, allFormats())
		if err != nil {
			t.Fatal(err)
		}
		e := startEnsemble(t, 3, func(c *Config) { c.Quorum.SASL = fromFile.Quorum.SASL })
		w := connect(t, e.servers[0])
		w.create("/before", nil, proto.ModePersistent)
		time.Sleep(time.Minute)
		connect(t, e.servers[1]).create("/after", nil, proto.ModePersistent)

		right := fromFile.Quorum.SASL.of()
		wrong := *right
		wrong.Password = "Secret"
		for _, tt := range []struct {
			s    *raftfsm.SASL
			want quorum.Code
		}{{nil, quorum.NeedSASL}, {&wrong, quorum.LoginRefused}, {right, quorum.NotReady}} {
			hub, err := quorum.Listen(e.net.Host("stranger"), "stranger:1", quorum.Identity{ServerID: "3"}, quorum.Security{SASL: tt.s}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []quorum.Kind{quorum.Raft, quorum.Forward, quorum.Liveness, quorum.Probe, quorum.Poll} {
				want := tt.want
				if kind == quorum.Probe && tt.s == right {
					want = quorum.Accepted
				}
				_, theirs, err := hub.Dial(t.Context(), kind, host(1)+":2888", "1")
				var refused *quorum.RefusedError
				switch {
				case want == quorum.Accepted && err != nil, want != quorum.Accepted && (!errors.As(err, &refused) || refused.Code != want):
					t.Errorf("a %s stream: %v, want code %d", kind, err, want)
				case (tt.s == right) != (theirs.ServerID == "1"):
					t.Errorf("a %s stream: it says that it is %+v", kind, theirs)
				}
			}
			hub.Close()
		}
	})
}
