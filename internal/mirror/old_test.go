package mirror

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// file writes a file into a new folder and returns its path.
func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestDescribeAList(t *testing.T) {
	t.Parallel()
	old := must.Get(Describe("zk1:2888, zk2:2888,[::1]:2888", "zk1:2181,zk2:2181,[::1]:2182"))(t)
	if got := old.QuorumAddrs(); !slices.Equal(got, []string{"zk1:2888", "zk2:2888", "[::1]:2888"}) {
		t.Errorf("%q", got)
	}
	if got := old.ClientAddrs(); !slices.Equal(got, []string{"zk1:2181", "zk2:2181", "[::1]:2182"}) {
		t.Errorf("%q", got)
	}
	if s := &old.Servers[2]; s.Host() != "::1" || s.String() != "[::1]:2182" {
		t.Error(s.Host(), s)
	}
}

// TestDescribeAFile reads a zoo.cfg with keys for its machine, and lines of both forms.
func TestDescribeAFile(t *testing.T) {
	t.Parallel()
	path := file(t, t.TempDir(), "zoo.cfg", `
# a comment
dataDir=/var/on/another/machine
clientPort = 2181
secureClientPort=2281
sslQuorum=true
quorum.auth.enableSasl=True
quorum.auth.learner.saslLoginContext=Learner
unknown.key=1
server.2=zk2:2888:3888:observer
server.10=10.0.0.9:2888:3888;0.0.0.0:2191
server.1=zk1:2888:3888|zk1b:2889:3889
`)
	old := must.Get(Describe(path, ""))(t)
	want := []OldServer{
		{ID: 1, Quorum: []string{"zk1:2888", "zk1b:2889"}, Client: "zk1:2181", Secure: "zk1:2281"},
		{ID: 2, Quorum: []string{"zk2:2888"}, Client: "zk2:2181", Secure: "zk2:2281", Observer: true},
		{ID: 10, Quorum: []string{"10.0.0.9:2888"}, Client: "10.0.0.9:2191", Secure: "10.0.0.9:2281"},
	}
	if !reflect.DeepEqual(old.Servers, want) {
		t.Errorf("%+v", old.Servers)
	}
	if got := old.QuorumAddrs(); !slices.Equal(got, []string{"zk1:2888", "zk1b:2889", "10.0.0.9:2888"}) {
		t.Errorf("%q", got)
	}
	section, sasl := old.QuorumSASL()
	if !old.QuorumTLS() || !sasl || section != "Learner" || old.Settings["dataDir"] != "/var/on/another/machine" {
		t.Errorf("%v %v %q %q", old.QuorumTLS(), sasl, section, old.Settings)
	}
}

// A dynamic file replaces the servers in zoo.cfg, as in ZooKeeper. It may be named from its
// folder.
func TestDescribeADynamicFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "zoo.cfg.dynamic.100", "server.1=zk1:2888:3888:participant;2181\nserver.2=zk2:2888:3888;zk2c:2182\n")
	path := file(t, dir, "zoo.cfg", "dynamicConfigFile=zoo.cfg.dynamic.100\nserver.9=gone:2888:3888\n")
	old := must.Get(Describe(path, ""))(t)
	if got := old.ClientAddrs(); !slices.Equal(got, []string{"zk1:2181", "zk2c:2182"}) {
		t.Errorf("%q", got)
	}
	if section, sasl := old.QuorumSASL(); sasl || section != "QuorumLearner" || old.QuorumTLS() {
		t.Error(section, sasl)
	}
}

func TestDescribeErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ from, clients, want string }{
		{"", "", "is not a quorum address"},
		{"zk1", "", `"zk1" is not a quorum address, e.g. zk1:2888`},
		{"zk1:0", "", "is not a quorum address"},
		{"zk1:2888,", "", `"" is not a quorum address`},
		{"zk1:2888,zk1:2888", "", "zk1:2888 is listed twice"},
		{"zk1:2888", "zk1", `"zk1" is not a client address`},
		{"zk1:2888", "a:1,b:1", "2 client addresses for 1 servers"},
		{"none.cfg", "", "none.cfg: no such file"},
		{dir, "", "is a directory"},
		{file(t, dir, "alone.cfg", "clientPort=2181\n"), "", "no server.N lines: a standalone server"},
		{file(t, dir, "bad.cfg", "server.1=zk1\n"), "", "server.1: wrong format"},
		{file(t, dir, "number.cfg", "server.x=zk1:1:2\n"), "", "expected a number after server"},
		{file(t, dir, "dynamic.cfg", "dynamicConfigFile=none\n"), "", "dynamicConfigFile"},
	} {
		if _, err := Describe(c.from, c.clients); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: %v, want %q", c.from, c.clients, err, c.want)
		}
	}
}

// The leader's list adds ids, servers and client addresses, and removes none.
func TestAddMembers(t *testing.T) {
	t.Parallel()
	old := must.Get(Describe("zk1:2888,gone:2888", "zk1:2191,gone:2181"))(t)
	must.Do(t, old.AddMembers("server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:observer;0.0.0.0:2181\nserver.3=zk3:2888:3888:participant\nversion=100000000"))
	want := []OldServer{
		{ID: 1, Quorum: []string{"zk1:2888"}, Client: "zk1:2191", named: true},
		{ID: -1, Quorum: []string{"gone:2888"}, Client: "gone:2181", named: true},
		{ID: 2, Quorum: []string{"zk2:2888"}, Client: "zk2:2181", Observer: true},
		{ID: 3, Quorum: []string{"zk3:2888"}},
	}
	if !reflect.DeepEqual(old.Servers, want) {
		t.Errorf("%+v", old.Servers)
	}
	must.Do(t, old.AddMembers("")) // ZooKeeper 3.4
	path := file(t, t.TempDir(), "zoo.cfg", "clientPort=2181\nserver.1=zk1:2888:3888\nserver.2=zk2:2888:3888\n")
	other := must.Get(Describe(path, ""))(t)
	must.Do(t, other.AddMembers("server.1=zk1:2888:3888:participant;0.0.0.0:2191\nserver.2=zk2:2888:3888:participant"))
	if got := other.ClientAddrs(); !slices.Equal(got, []string{"zk1:2191", "zk2:2181"}) {
		t.Errorf("%q", got)
	}
	if err := old.AddMembers("server.1=zk1"); err == nil || !strings.Contains(err.Error(), "the configuration that the leader sent") {
		t.Error(err)
	}
}

// TestForgetStreams: of zkgo servers, the entries are those with the addresses that clients know.
func TestForgetStreams(t *testing.T) {
	t.Parallel()
	const members = "server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:participant;0.0.0.0:2181\nversion=0"
	for _, c := range []struct {
		from, clients, members string
		want                   []string
		servers                int
	}{
		{"zk1:2191,zk2:2191", "", members, []string{"zk1:2181", "zk2:2181"}, 2},
		{"zk1:2191", "", members, []string{"zk1:2181", "zk2:2181"}, 2},
		{"zk1:2191,zk2:2191", "proxy:1,proxy:2", members, []string{"proxy:1", "proxy:2"}, 2},
		{"zk1:2191", "proxy:1", members, []string{"proxy:1", "zk1:2181", "zk2:2181"}, 3},
		{"zk1:2191", "zk1:2181", "", []string{"zk1:2181"}, 1},
		{"zk1:2191", "", "", nil, 1}, // a standalone server: its client port is not known
	} {
		old := must.Get(Describe(c.from, c.clients))(t)
		must.Do(t, old.AddMembers(c.members))
		old.ForgetStreams(false)
		if got := old.ClientAddrs(); !slices.Equal(got, c.want) || len(old.Servers) != c.servers {
			t.Errorf("%s %s: %q, %+v", c.from, c.clients, got, old.Servers)
		}
	}
	old := must.Get(Describe("b1:2191,b2:2191", "b1:2181,b2:2181"))(t)
	must.Do(t, old.AddMembers(members)) // the ensemble that b1 and b2 follow
	old.ForgetStreams(true)
	if got := old.ClientAddrs(); !slices.Equal(got, []string{"b1:2181", "b2:2181", "zk1:2181", "zk2:2181"}) {
		t.Errorf("a mirror of a mirror: %q", got)
	}
}
