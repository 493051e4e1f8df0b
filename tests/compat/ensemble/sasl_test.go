package ensemble

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// The steps of ZooKeeper's guide to SASL between servers.
var saslSteps = [][]string{
	{"quorum.auth.enableSasl=true"},
	{"quorum.auth.enableSasl=true", "quorum.auth.learnerRequireSasl=true"},
	{"quorum.auth.enableSasl=true", "quorum.auth.learnerRequireSasl=true", "quorum.auth.serverRequireSasl=true"},
}

// logins writes a server's JAAS file and returns the line that names it. The server accepts
// zk:secret, and logs in to others as user with password.
func (n *node) logins(t testing.TB, user, password string) string {
	t.Helper()
	file := filepath.Join(n.dir, "jaas.conf")
	put(t, file, fmt.Appendf(nil, `
QuorumServer {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       user_zk="secret";
};
QuorumLearner {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       username="%s"
       password="%s";
};
`, user, password))
	return "java.security.auth.login.config=" + file
}

// with returns the settings of a step for a server that knows the password.
func (n *node) with(t testing.TB, step []string) []string {
	t.Helper()
	if step == nil {
		return nil
	}
	return append([]string{n.logins(t, "zk", "secret")}, step...)
}

// letsIn reports whether a server's quorum port replies with anything but a refusal to a
// peer that doesn't use SASL.
func (n *node) letsIn() bool {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", n.host, n.quorum), process.Patience)
	if err != nil {
		return false
	}
	defer conn.Close()
	// magic, version, a probe, code, zero sender and recipient.
	hello := append([]byte("zkgopeer\x00\x01\x04\x00"), make([]byte, 32+32+8+8+8+8+16)...)
	if _, err := conn.Write(hello); err != nil {
		return false
	}
	answer := make([]byte, len(hello))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return false
	}
	return answer[len("zkgopeer")+1] == 1
}

// TestSASLPairings makes two servers form an ensemble with every pair of settings.
func TestSASLPairings(t *testing.T) {
	t.Parallel()
	saslPairings(t, false)
}

// TestSASLPairingsOfZooKeeper checks that real servers do the same for each pair.
func TestSASLPairingsOfZooKeeper(t *testing.T) {
	t.Parallel()
	if os.Getenv("ZKGO_LIVE") != "1" {
		t.Skip("set ZKGO_LIVE=1 to see whether the real server does the same")
	}
	saslPairings(t, true)
}

func saslPairings(t *testing.T, real bool) {
	none, enabled, learner, server := []string(nil), saslSteps[0], saslSteps[1], saslSteps[2]
	for _, tc := range []struct {
		name     string
		one, two []string
		password string // that server 1 logs in with
		talk     bool
	}{
		{"none, none", none, none, "secret", true},
		{"none, enabled", none, enabled, "secret", true},
		{"none, learner", none, learner, "secret", false},
		{"none, server", none, server, "secret", false},
		{"enabled, enabled", enabled, enabled, "secret", true},
		{"enabled, learner", enabled, learner, "secret", true},
		{"enabled, server", enabled, server, "secret", false},
		{"learner, learner", learner, learner, "secret", true},
		{"learner, server", learner, server, "secret", true},
		{"server, server", server, server, "secret", true},
		{"a wrong password that nobody calls with", enabled, learner, "Secret", true},
		{"a wrong password that nobody requires", learner, learner, "Secret", false},
		{"a wrong password", server, server, "Secret", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, 2, "fips-mode=false") // required for ZooKeeper to use DIGEST-MD5
			c.real = real
			for id, step := range map[int][]string{1: tc.one, 2: tc.two} {
				n := c.nodes[id]
				password := "secret"
				if id == 1 {
					password = tc.password
				}
				file := n.logins(t, "zk", password)
				n.jvm = []string{"-D" + file}
				c.write(id, append(append(c.lines(1, 2), file), step...)...)
			}
			c.start(1, 2)
			if tc.talk {
				c.await(1, 2)
				return
			}
			c.eventually("one of them says that it refuses the other", func() bool {
				if real {
					return strings.Contains(c.nodes[1].java.Log()+c.nodes[2].java.Log(), "SaslException")
				}
				return refused(c.output(1), "SASL") || refused(c.output(1), "our user or password")
			})
			c.never(3*time.Second, "both serve", func() bool { return c.mode(1) != "" && c.mode(2) != "" })
		})
	}
}

// TestChangeToSASL moves an ensemble to SASL in the steps of ZooKeeper's guide, and back,
// one server after the other, while clients write.
func TestChangeToSASL(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest)
	c.form(1, 2, 3)
	clients := []*client{c.connect("a", 1, 2, 3), c.connect("b", 3, 1, 2)}
	enabled, learner, server := saslSteps[0], saslSteps[1], saslSteps[2]
	for i, step := range [][]string{enabled, learner, server, learner, enabled, nil} {
		for id := 1; id <= 3; id++ {
			c.restart(id, c.nodes[id].with(t, step)...)
			c.await(id)
			for _, w := range clients {
				w.more(c, 5)
			}
			if lets, should := c.nodes[id].letsIn(), len(step) != len(server); lets != should {
				t.Errorf("%v: server %d lets in who does not use SASL: %t", step, id, lets)
			}
		}
		for id := 1; id <= 3; id++ {
			// The test's own connection to the port isn't a stream from a server.
			if refused(c.output(id), " stream to ") {
				t.Errorf("%v: server %d was refused by another:\n%s", step, id, c.output(id))
			}
		}
		if i == 2 {
			c.killLeader(clients...)
		}
	}
	c.verify(clients, 1, 2, 3)
}

// TestSASLWithTLS uses both at once, and kills the leader.
func TestSASLWithTLS(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest, "sslQuorum=true")
	c.apart()
	c.certified(newAuthority(t, "CA"), 1, 2, 3)
	settings := make(map[int][]string)
	for id, n := range c.nodes {
		settings[id] = append(n.stores(), n.with(t, saslSteps[2])...)
	}
	c.formWith(settings)
	c.survives(c.connect("a", 1, 2, 3))
}

// TestSASLRefused starts server 3 with settings that the others must not accept, or that
// don't accept the others. It doesn't join, and the logs on both sides say which server was
// refused and why. The others continue, and accept server 3 again after it is fixed.
func TestSASLRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest)
	settings := make(map[int][]string)
	for id, n := range c.nodes {
		settings[id] = n.with(t, saslSteps[2])
	}
	c.formWith(settings)
	clients := []*client{c.connect("a", 1, 2)}
	third := c.nodes[3]
	without, only, calling := []string(nil), saslSteps[0], saslSteps[1]
	for _, tc := range []struct {
		name           string
		others         []string // the step of servers 1 and 2
		mine           []string // and of server 3
		user, password string
		says           string   // by server 3, when it connects
		they           []string // by the server that it connects to
	}{
		{"without SASL", saslSteps[2], without, "zk", "secret", "requires SASL by its quorum.auth.serverRequireSasl",
			[]string{"from server 3", "does not use SASL", "quorum.auth.learnerRequireSasl there"}},
		{"enabled only", saslSteps[2], only, "zk", "secret", "requires SASL by its quorum.auth.serverRequireSasl",
			[]string{"from server 3", "does not use SASL"}},
		{"wrong password", saslSteps[2], calling, "zk", "Secret", "does not accept our user or password",
			[]string{"from server 3", `wrong password for \"zk\"`}},
		{"wrong user", saslSteps[2], saslSteps[2], "eve", "secret", "does not accept our user or password",
			[]string{"from server 3", `wrong password for \"eve\"`}},
		// As in ZooKeeper, if a server sends credentials, they must be right.
		{"wrong password where none is required", calling, calling, "zk", "Secret", "does not accept our user or password",
			[]string{"from server 3", `wrong password for \"zk\"`}},
		{"calls who does not take it", without, calling, "zk", "secret", "does not accept SASL",
			[]string{"from server 3", "uses SASL", "quorum.auth.enableSasl here"}},
	} {
		c.stop(3)
		for id := 1; id <= 2; id++ { // a refusal is logged only once in a while
			c.restart(id, c.nodes[id].with(t, tc.others)...)
		}
		c.await(1, 2)
		login := third.logins(t, tc.user, tc.password)
		c.write(3, append(append(c.lines(1, 2, 3), login), tc.mine...)...)
		c.start(3)
		c.eventually(tc.name+": both sides say why", func() bool {
			return refused(c.output(3), " to server ", tc.says) && (refused(c.output(1), tc.they...) || refused(c.output(2), tc.they...))
		})
		if c.mode(3) != "" {
			t.Errorf("%s: server 3 serves", tc.name)
		}
		for id := 1; id <= 3; id++ {
			if out := c.output(id); strings.Contains(out, `"secret"`) || strings.Contains(out, "password=") {
				t.Errorf("%s: a password is in the log of server %d:\n%s", tc.name, id, out)
			}
		}
		clients[0].more(c, 5)
	}
	for id, n := range c.nodes {
		c.restart(id, n.with(t, saslSteps[2])...)
	}
	c.await(1, 2, 3)
	c.verify(clients, 1, 2, 3)
}

// TestSASLAsksForALogin: the server should refuse to start with a file without logins.
func TestSASLAsksForALogin(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for _, tc := range []struct {
		lines []string
		want  string
	}{
		{saslSteps[0], "java.security.auth.login.config is not set: expected the JAAS file with the sections QuorumServer and QuorumLearner"},
		{c.nodes[1].with(t, append([]string{"quorum.auth.learner.saslLoginContext=Other"}, saslSteps[0]...)), `no section \"Other\"`},
		{saslSteps[2][1:], "quorum.auth.enableSasl is disabled, so cannot enable quorum.auth."},
		{[]string{saslSteps[2][0], saslSteps[2][2]}, "quorum.auth.learnerRequireSasl is disabled, so cannot enable quorum.auth.serverRequireSasl"},
	} {
		c.write(1, append(c.lines(1, 2, 3), tc.lines...)...)
		if err := c.try(1); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `\"`, `"`), strings.ReplaceAll(tc.want, `\"`, `"`)) {
			t.Errorf("%v: %v, want %q", tc.lines, err, tc.want)
		}
	}
}
