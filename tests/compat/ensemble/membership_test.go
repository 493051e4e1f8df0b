package ensemble

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// reconfigurable are the settings of an ensemble that allows reconfig.
var reconfigurable = []string{"reconfigEnabled=true", superDigest}

// TestGrowAndShrink grows a standalone server, which receives a new id in the ensemble, to three
// and five servers and shrinks it to three, one and back to standalone, with clients connected all
// the time.
func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, append(reconfigurable, "standaloneEnabled=false")...)
	c.write(3, "standaloneEnabled=true")
	c.start(3)
	c.await(3)
	clients := []*client{c.connect("a", 3), c.connect("b", 3)}

	// One server, now as member 3 of an ensemble of one.
	c.stop(3)
	c.write(3, c.lines(3)...)
	c.start(3)
	c.await(3)
	if got := c.config(3); !strings.HasPrefix(got, "server.3=") || strings.Count(got, "server.") != 1 {
		t.Fatalf("an ensemble of one: %q", got)
	}
	joined := []int{3}
	grow := func(ids ...int) {
		var lines []string
		for _, id := range ids {
			c.write(id, c.lines(append(append([]int{}, joined...), id)...)...)
			lines = append(lines, c.nodes[id].line("participant"))
		}
		c.start(ids...)
		c.mustReconfig(3, strings.Join(lines, ","), "", "")
		joined = append(joined, ids...)
		c.await(joined...)
		for _, w := range clients {
			w.knows(c, joined...)
			w.more(c, 10)
		}
	}
	grow(1, 2)
	grow(4, 5)
	if got := c.config(5); strings.Count(got, "participant") != 5 {
		t.Fatalf("five: %q", got)
	}
	shrink := func(rest []int, leaving ...int) {
		var ids []string
		for _, id := range leaving {
			ids = append(ids, fmt.Sprint(id))
		}
		for _, w := range clients {
			w.knows(c, rest...)
		}
		c.mustReconfig(rest[0], "", strings.Join(ids, ","), "")
		c.stop(leaving...)
		c.await(rest...)
		for _, w := range clients {
			w.more(c, 10)
		}
		joined = rest
	}
	shrink([]int{2, 3, 4}, 1, 5) // 5 or 3 leads
	lead := c.leader()
	rest := map[int][]int{2: {3, 4}, 3: {2, 4}, 4: {2, 3}}[lead]
	shrink(rest, lead) // the leader leaves
	last := rest[:1]
	shrink(last, rest[1])
	c.verify(clients, last...)

	// Back to standalone, without an ensemble.
	c.stop(last...)
	c.write(last[0], "standaloneEnabled=true")
	c.start(last...)
	c.await(last...)
	if mode := c.mode(last[0]); mode != "standalone" {
		t.Errorf("mode %q", mode)
	}
	if got := c.config(last[0]); got != "" {
		t.Errorf("the membership of a server that stands alone: %q", got)
	}
	c.verify(clients, last...)
}

// TestFilesGrowAndShrink edits the list and restarts the servers one by one, as most
// ZooKeeper operators do. The ensemble follows, with clients connected.
func TestFilesGrowAndShrink(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, superDigest)
	c.form(1, 2, 3)
	w := c.connect("w", 1, 2, 3)
	roll := func(list []int, restart ...int) {
		for _, id := range list {
			c.write(id, c.lines(list...)...)
		}
		for _, id := range restart {
			c.stop(id)
			c.start(id)
			c.await(id)
		}
	}
	all := []int{1, 2, 3, 4, 5}
	for _, id := range all {
		c.write(id, c.lines(all...)...)
	}
	c.start(4, 5)
	c.says(4, "server 4 is not a member of the ensemble: restart its servers, one after another, with a list that has it")
	c.stop(1)
	c.start(1)
	c.says(1, "the configuration file does not list the members of the ensemble", fmt.Sprintf(
		"reconfig -add server.4=127.0.0.1:%d:%d:participant;%d,server.5=", c.nodes[4].quorum, c.nodes[4].election, c.nodes[1].client))
	c.eventually("mntr says that file and membership differ", func() bool { return strings.Contains(c.word(1, "mntr"), "zk_config_file_differs\t1") })
	if got := c.config(1); strings.Count(got, "server.") != 3 {
		t.Fatalf("one file of three has changed the membership: %q", got)
	}
	roll(all, 2, 3)
	c.await(all...)
	c.eventually("five members", func() bool { return strings.Count(c.config(1), "participant") == 5 })
	w.knows(c, all...)
	w.more(c, 10)
	for _, id := range all {
		c.eventually("mntr is content", func() bool { return strings.Contains(c.word(id, "mntr"), "zk_config_file_differs\t0") })
	}
	// And back: we restart the servers that stay, and then stop the servers that leave. If the
	// leader leaves, it has the old file and changes nothing.
	three := []int{1, 2, 3}
	w.knows(c, three...)
	roll(three, three...)
	c.stop(4, 5)
	c.eventually("three members", func() bool { return strings.Count(c.config(1), "participant") == 3 })
	w.more(c, 10)
	c.verify([]*client{w}, three...)
}

// TestReplaceAll replaces all three servers with others.
func TestReplaceAll(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 6, reconfigurable...)
	c.form(1, 2, 3)
	w := c.connect("w", 1, 2, 3, 4, 5, 6)
	var lines []string
	for id := 4; id <= 6; id++ {
		c.write(id, append(c.lines(1, 2, 3), c.nodes[id].line(""))...)
		lines = append(lines, c.nodes[id].line("participant"))
	}
	c.start(4, 5, 6)
	// The leader hands over in the meantime, and server 1 leaves: its reply may be lost
	// although the change was made, and if we repeated the request, it would fail.
	c.eventually("three other servers", func() bool {
		err := c.reconfig(1, "", "", strings.Join(lines, ","))
		return err == nil || c.eventuallyReplaced(4, 1)
	})
	c.kill(1, 2, 3)
	c.await(4, 5, 6)
	w.knows(c, 4, 5, 6)
	w.more(c, 10)
	c.verify([]*client{w}, 4, 5, 6)
}

// eventuallyReplaced waits for replaced, and reports whether it became true.
func (c *cluster) eventuallyReplaced(id, other int) bool {
	return wait.For(process.Patience/2, "it is replaced", func() (bool, error) { return c.replaced(id, other), nil }) == nil
}

// replaced reports whether a server answers and has itself, and not the other server, in
// the membership.
func (c *cluster) replaced(id, other int) bool {
	cl, err := process.Connect(c.nodes[id].addr(), 0, nil, 30*time.Second)
	if err != nil {
		return false
	}
	defer cl.Close()
	b, _, err := cl.Get("/zookeeper/config")
	return err == nil && strings.Contains(string(b), fmt.Sprintf("server.%d=", id)) && !strings.Contains(string(b), fmt.Sprintf("server.%d=", other))
}

// TestMoved starts a server on other ports, which only its own file lists.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{"reconfig": reconfigurable, "files": {superDigest}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, settings...)
			c.form(1, 2, 3)
			w := c.connect("w", 1, 2, 3)
			moved := c.leader()
			c.stop(moved)
			old := c.nodes[moved]
			c.nodes[moved] = c.newNode(moved)
			c.nodes[moved].client = old.client
			c.write(moved, c.lines(1, 2, 3)...)
			c.start(moved)
			c.await(1, 2, 3)
			want := fmt.Sprintf("server.%d=%s", moved, c.nodes[moved].spec("participant", false))
			c.eventually("the new address in the membership", func() bool { return strings.Contains(c.config(moved%3+1), want) })
			other := moved%3 + 1
			if name == "files" { // reconfig updates the files
				c.says(other, "the configuration file does not list the members of the ensemble", fmt.Sprintf("reconfig -add server.%d=127.0.0.1:%d:", moved, old.quorum))
			}
			// It is a voter: with its vote, another server may stop.
			c.stop(other)
			w.more(c, 10)
			c.start(other)
			c.await(other)
			c.verify([]*client{w}, 1, 2, 3)
		})
	}
}

// TestObservers checks that observers replicate without a vote, and outlive a leader.
func TestObservers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, superDigest)
	lines := append(c.lines(1, 2, 3), fmt.Sprintf("server.4=%s", c.nodes[4].spec("observer", false)), fmt.Sprintf("server.5=%s", c.nodes[5].spec("observer", false)))
	for id := 1; id <= 5; id++ {
		c.write(id, lines...)
	}
	c.start(1, 2, 3, 4, 5)
	c.await(1, 2, 3, 4, 5)
	w := c.connect("w", 4, 5)
	if mode := c.mode(4); mode != "observer" {
		t.Fatalf("mode %q", mode)
	}
	lead := c.leader()
	c.eventually("the leader counts two observers and three voters", func() bool {
		mntr := c.word(lead, "mntr")
		return strings.Contains(mntr, "zk_synced_observers\t2") && strings.Contains(mntr, "zk_quorum_size\t3")
	})
	c.kill(lead)
	w.more(c, 10)
	// Two observers don't help: one voter of three isn't a majority.
	second := c.leader()
	c.kill(second)
	c.eventually("nobody leads", func() bool {
		for id := range c.nodes {
			if c.nodes[id].running() && c.mode(id) == "leader" {
				return false
			}
		}
		return true
	})
	c.start(lead)
	w.more(c, 10)
	c.verify([]*client{w}, 4, 5)
}

// TestLeaderServesNoClients checks that leaderServes=no keeps clients from the leader.
func TestLeaderServesNoClients(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest, "leaderServes=no")
	for id := 1; id <= 3; id++ {
		c.write(id, c.lines(1, 2, 3)...)
	}
	c.start(1, 2, 3)
	lead := 0
	c.eventually("two servers serve, and one that leads does not", func() bool {
		serving := 0
		for id := 1; id <= 3; id++ {
			switch words := c.word(id, "srvr"); {
			case strings.Contains(words, "Mode: follower"):
				serving++
			case strings.Contains(words, "not currently serving requests"):
				lead = id
			}
		}
		return serving == 2 && lead != 0
	})
	w := c.connect("w", 3, 2, 1)
	c.stop(lead)
	w.more(c, 10)
	c.start(lead)
	c.await(lead)
	c.verify([]*client{w}, lead)
}

// TestMultiAddress connects the servers over the second of their addresses.
func TestMultiAddress(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, superDigest, "multiAddress.enabled=true")
	var lines []string
	for id := 1; id <= 3; id++ { // no server listens on the first address
		n := c.nodes[id]
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.9:%d:%d|127.0.0.1:%d:%d", id, n.quorum, n.election, n.quorum, n.election))
	}
	for id := 1; id <= 3; id++ {
		c.write(id, append(slices.Clone(lines), "quorumListenAddress=127.0.0.1")...)
	}
	c.start(1, 2, 3)
	c.await(1, 2, 3)
	w := c.connect("w", 1, 2, 3)
	c.kill(1)
	w.more(c, 10)
	if got := c.config(2); !strings.Contains(got, "|127.0.0.9:") {
		t.Errorf("config %q", got)
	}
	c.verify([]*client{w}, 2, 3)
}

// TestDynamicFile compares the changes that zkgo and ZooKeeper make to a configuration
// file.
func TestDynamicFile(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, append(reconfigurable, "# a comment", "! another")...)
	for id := 1; id <= 3; id++ {
		c.write(id, c.lines(1, 2, 3)...)
	}
	before := must.Get(os.ReadFile(c.nodes[1].cfg()))(t)
	c.start(1, 2, 3)
	c.await(1, 2, 3)
	// The comments of the file stay, and the server lines are removed.
	version := func(text string) string { _, v, _ := strings.Cut(text, "\nversion="); return v }
	file := func(id int) string { return c.nodes[id].cfg() + ".dynamic." + version(c.config(id)) }
	dynamic := func(id int) string {
		b, _ := os.ReadFile(file(id))
		return string(b)
	}
	c.eventually("the dynamic file", func() bool {
		b, _ := os.ReadFile(c.nodes[1].cfg())
		return strings.Contains(string(b), "dynamicConfigFile="+file(1))
	})
	text := c.config(1)
	if want := strings.TrimSuffix(text, "\nversion="+version(text)); dynamic(1) != want {
		t.Errorf("dynamic file %q, want %q", dynamic(1), want)
	}
	static, _ := os.ReadFile(c.nodes[1].cfg())
	backup, _ := os.ReadFile(c.nodes[1].cfg() + ".bak")
	if string(backup) != string(before) {
		t.Errorf("backup %q, want %q", backup, before)
	}
	if strings.Contains(string(static), "server.") || !strings.Contains(string(static), "# a comment\n! another\n") || !strings.Contains(string(static), "clientPort=") {
		t.Errorf("static file %q", static)
	}
	// A reconfig updates the file; a server that was down catches up; a restart works.
	c.stop(2)
	c.write(4, append(c.lines(1, 2, 3), c.nodes[4].line(""))...)
	c.start(4)
	c.mustReconfig(1, c.nodes[4].line("participant"), "", "")
	c.await(1, 3, 4)
	c.start(2)
	c.await(2)
	for id := 1; id <= 4; id++ {
		c.eventually("the dynamic file of the reconfig", func() bool {
			return strings.Count(dynamic(id), "server.") == 4 && strings.Contains(c.word(id, "mntr"), "zk_config_file_differs\t0\n")
		})
	}
	c.stop(1)
	c.start(1)
	c.await(1)
	c.eventually("mntr is content with the dynamic file", func() bool { return strings.Contains(c.word(1, "mntr"), "zk_config_file_differs\t0") })
	c.eventually("four files, and no temporary one", func() bool {
		files, _ := filepath.Glob(c.nodes[1].cfg() + "*")
		return len(files) == 4
	})
}
