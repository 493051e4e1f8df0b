package ensemble

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// superDigest lets clients log in as super:secret, which may reconfigure.
const superDigest = "DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4="

// cluster is a set of servers. Some of the servers run.
type cluster struct {
	t        testing.TB
	dir      string
	settings []string // lines added to every zoo.cfg
	nodes    map[int]*node
	real     bool // ZooKeeper instead of zkgo
}

// node is one server.
type node struct {
	id                       int
	dir                      string
	host                     string // where the others connect to it
	quorum, election, client int
	proc                     *process.Server // if zkgo
	java                     *oracle.Server
	jvm                      []string // arguments for java
}

// newCluster chooses ports for n servers, with ids starting at 1.
func newCluster(t testing.TB, n int, settings ...string) *cluster {
	t.Helper()
	var ids []int
	for id := 1; id <= n; id++ {
		ids = append(ids, id)
	}
	return clusterOf(t, ids, settings...)
}

// clusterOf chooses ports for servers with the given ids.
func clusterOf(t testing.TB, ids []int, settings ...string) *cluster {
	t.Helper()
	if !*record {
		process.Needed(t)
	}
	c := &cluster{t: t, dir: t.TempDir(), settings: settings, nodes: make(map[int]*node)}
	for _, id := range ids {
		c.nodes[id] = c.newNode(id)
	}
	t.Cleanup(c.stopAll)
	return c
}

func (c *cluster) newNode(id int) *node {
	ports := c.freePorts()
	n := &node{id: id, dir: filepath.Join(c.dir, fmt.Sprint(id)), host: "127.0.0.1", quorum: ports[0], election: ports[1], client: ports[2]}
	must.Do(c.t, os.MkdirAll(filepath.Join(n.dir, "data"), 0o700))
	n.setMyID(c.t, id)
	return n
}

// freePorts returns three ports that no other server of the cluster uses.
func (c *cluster) freePorts() []int {
	for {
		ports := must.Get(oracle.FreePorts(3))(c.t)
		taken := false
		for _, n := range c.nodes {
			taken = taken || slices.ContainsFunc([]int{n.quorum, n.election, n.client}, func(p int) bool { return slices.Contains(ports, p) })
		}
		if !taken {
			return ports
		}
	}
}

func (n *node) setMyID(t testing.TB, id int) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(n.dir, "data", "myid"), fmt.Appendln(nil, id), 0o600))
}

func (n *node) addr() string { return fmt.Sprintf("127.0.0.1:%d", n.client) }

// cfg returns the path of the server's configuration file.
func (n *node) cfg() string { return filepath.Join(n.dir, "zoo.cfg") }

// spec returns the value of server.N=, with or without the client's part.
func (n *node) spec(role string, client bool) string {
	s := fmt.Sprintf("%s:%d:%d", n.host, n.quorum, n.election)
	if role != "" {
		s += ":" + role
	}
	if client {
		s += fmt.Sprintf(";127.0.0.1:%d", n.client)
	}
	return s
}

// line returns the server's whole line, in the format of reconfig.
func (n *node) line(role string) string { return fmt.Sprintf("server.%d=%s", n.id, n.spec(role, true)) }

// lines returns the server lines of the given servers.
func (c *cluster) lines(ids ...int) []string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf("server.%d=%s", id, c.nodes[id].spec("", false)))
	}
	return all
}

// write writes the configuration file of a server: the common settings, more lines, and
// the client port unless a line has it.
func (c *cluster) write(id int, lines ...string) {
	c.t.Helper()
	n := c.nodes[id]
	all := []string{"tickTime=1000", "initLimit=40", "syncLimit=20", "maxClientCnxns=0", "admin.enableServer=false",
		"4lw.commands.whitelist=*", "dataDir=" + filepath.Join(n.dir, "data")}
	all = append(append(all, c.settings...), lines...)
	if !slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, fmt.Sprintf("server.%d=", id)) && strings.Contains(l, ";")
	}) {
		all = append(all, fmt.Sprint("clientPort=", n.client), "clientPortAddress=127.0.0.1")
	}
	must.Do(c.t, os.WriteFile(n.cfg(), []byte(strings.Join(all, "\n")+"\n"), 0o600))
}

// start starts servers without waiting until they serve.
func (c *cluster) start(ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		if err := c.try(id); err != nil {
			c.t.Fatalf("server %d: %v", id, err)
		}
	}
}

// try is start for a server that may refuse.
func (c *cluster) try(id int, args ...string) error {
	n := c.nodes[id]
	if c.real {
		n.java = oracle.At(n.dir, id, n.client).With(n.jvm...)
		return n.java.Launch()
	}
	p, err := process.Run(process.Binary(c.t), append([]string{"server", n.cfg()}, args...)...)
	n.proc = p
	return err
}

// form writes the same list for the servers, starts them and waits until all serve.
func (c *cluster) form(ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		c.write(id, c.lines(ids...)...)
	}
	c.start(ids...)
	c.await(ids...)
}

// await waits until the servers serve.
func (c *cluster) await(ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		c.eventually(fmt.Sprintf("server %d serves", id), func() bool { return c.mode(id) != "" })
	}
}

// word sends a four-letter word to a server and returns the reply, or "" if there is none.
func (c *cluster) word(id int, word string) string {
	answer, _ := process.Word(c.nodes[id].addr(), word, 5*time.Second) // what arrived before an error
	return answer
}

// mode returns the server's mode from srvr, or "" if it doesn't serve.
func (c *cluster) mode(id int) string {
	status, _ := process.ParseStatus(c.word(id, "srvr"))
	return status.Mode
}

// leader waits until one of the running servers leads.
func (c *cluster) leader() int {
	c.t.Helper()
	lead := -1
	c.eventually("a leader", func() bool {
		for id, n := range c.nodes {
			if n.running() && c.mode(id) == "leader" {
				lead = id
			}
		}
		return lead >= 0
	})
	return lead
}

func (n *node) running() bool {
	return n.proc != nil && n.proc.Running() || n.java != nil && n.java.Running()
}

// kill kills servers as kill -9 does.
func (c *cluster) kill(ids ...int) {
	for _, id := range ids {
		n := c.nodes[id]
		if n.proc != nil {
			n.proc.Kill()
		}
		if n.java != nil {
			n.java.Stop()
		}
	}
}

// stop stops servers as an operator does.
func (c *cluster) stop(ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		if err := c.nodes[id].proc.Stop(); err != nil {
			c.t.Fatalf("server %d: %v", id, err)
		}
	}
}

func (c *cluster) stopAll() {
	for id, n := range c.nodes {
		c.kill(id)
		if c.t.Failed() && n.proc != nil {
			c.t.Logf("server %d:\n%s", id, n.proc.Output())
		}
	}
}

// wipe empties a server's data directory.
func (c *cluster) wipe(id int) {
	c.t.Helper()
	n := c.nodes[id]
	must.Do(c.t, os.RemoveAll(filepath.Join(n.dir, "data")))
	must.Do(c.t, os.MkdirAll(filepath.Join(n.dir, "data"), 0o700))
	n.setMyID(c.t, id)
}

// output returns a server's output since its last start.
func (c *cluster) output(id int) string { return c.nodes[id].proc.Output() }

// says waits until a server has printed all of the texts.
func (c *cluster) says(id int, texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		c.eventually(fmt.Sprintf("server %d says %q", id, text), func() bool { return strings.Contains(c.output(id), text) })
	}
}

func (c *cluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	wait.Eventually(c.t, what, ok)
}

// never checks for a while that something doesn't happen.
func (c *cluster) never(d time.Duration, what string, happens func() bool) {
	c.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		if happens() {
			c.t.Fatal(what)
		}
	}
}

// admin connects to a server as the super user.
func (c *cluster) admin(id int) *process.Client {
	c.t.Helper()
	var cl *process.Client
	c.eventually(fmt.Sprintf("a session on server %d", id), func() bool {
		got, err := process.Connect(c.nodes[id].addr(), 0, nil, 30*time.Second)
		if err != nil {
			return false
		}
		cl = got
		return true
	})
	c.t.Cleanup(func() { cl.Close() })
	must.Get(cl.Do(proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("super:secret")}))(c.t)
	return cl
}

// reconfig changes the membership through a server.
func (c *cluster) reconfig(id int, joining, leaving, members string) error {
	c.t.Helper()
	cl := c.admin(id)
	defer cl.Close()
	null := func(s string) string {
		if s == "" {
			return proto.NullString
		}
		return s
	}
	_, err := cl.Do(proto.OpReconfig, &proto.ReconfigRequest{Joining: null(joining), Leaving: null(leaving),
		NewMembers: null(members), CurConfigID: -1})
	return err
}

// mustReconfig repeats a reconfig until the servers that it needs are available.
func (c *cluster) mustReconfig(id int, joining, leaving, members string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("reconfig +%s -%s =%s", joining, leaving, members), func() bool {
		err := c.reconfig(id, joining, leaving, members)
		if err != nil {
			c.t.Logf("reconfig through server %d: %v", id, err)
		}
		return err == nil
	})
}

// config returns the text of /zookeeper/config on a server.
func (c *cluster) config(id int) string {
	c.t.Helper()
	cl := c.admin(id)
	defer cl.Close()
	b, _, err := cl.Get("/zookeeper/config")
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}
