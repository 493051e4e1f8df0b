package ensemble

import (
	"strings"
	"testing"
	"time"
)

// quiet is how long a test checks that no server leads. We choose it so that the servers
// could have elected a leader many times.
const quiet = 3 * time.Second

// neverLed checks for a while that no server serves.
func (c *cluster) neverLed(ids ...int) {
	c.t.Helper()
	c.never(quiet, "a server serves that should not", func() bool {
		for _, id := range ids {
			if c.mode(id) != "" {
				c.t.Logf("server %d: %s", id, c.mode(id))
				return true
			}
		}
		return false
	})
}

// Servers with different files should not form an ensemble, and each should name the server that it
// differs from.
func TestDifferingLists(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	c.write(1, c.lines(1, 2, 3)...)
	c.write(2, c.lines(1, 2, 4)...)
	c.write(3, c.lines(1, 2, 3)...)
	c.start(2, 3)
	c.says(3, "has a different list of servers in its configuration (ours: server 3", "theirs: server 2")
	c.says(2, "has a different list of servers in its configuration")
	c.neverLed(2, 3)
	c.start(1) // now a majority agrees, but one server that replies doesn't
	c.neverLed(1, 2, 3)
	c.stop(2)
	c.write(2, c.lines(1, 2, 3)...)
	c.start(2)
	c.await(1, 2, 3)
}

// Two of three servers lost their disks. They should not form a new ensemble beside the
// server that has the data, but join when a majority with the data is back.
func TestTwoOfThreeWiped(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.form(1, 2, 3)
	w := c.connect("w", 1, 2, 3)
	w.more(c, 20)
	w.halt()
	c.kill(1, 2, 3)
	c.wipe(2)
	c.wipe(3)
	c.start(1, 2, 3)
	c.neverLed(1, 2, 3)
}

// If a member of another ensemble runs on the ports of one of our servers, we should refuse
// it by name.
func TestStranger(t *testing.T) {
	t.Parallel()
	ours, theirs := newCluster(t, 3), newCluster(t, 3)
	ours.form(1, 2, 3)
	theirs.form(1, 2, 3)
	ours.stop(3)
	theirs.kill(1, 2, 3)
	// Server 3 of theirs starts with our addresses.
	theirs.nodes[3].quorum, theirs.nodes[3].election = ours.nodes[3].quorum, ours.nodes[3].election
	theirs.nodes[3].client = ours.nodes[3].client
	theirs.write(3, ours.lines(1, 2, 3)...)
	theirs.start(3)
	theirs.says(3, "belongs to another ensemble (ours: server 3, ensemble ", "theirs: server ")
	theirs.neverLed(3)
	ours.await(1, 2)
	ours.says(ours.leader(), "belongs to another ensemble")
	theirs.kill(3)
	ours.start(3)
	ours.await(3)
}

// The server should refuse to start with unsupported settings, and explain why.
func TestRefusedAtStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for line, want := range map[string]string{
		"group.1=1:2\ngroup.2=3":                            "hierarchical quorums are not supported: 2 groups are configured",
		"group.1=1:2:3\nweight.1=2\nweight.2=1\nweight.3=1": "every voter counts the same here",
		"server.2=a:1:2|b:1:2":                              "multiAddress.enabled=true",
		"dynamicConfigFile=/no/such/file":                   "must be in a separate dynamic config file",
	} {
		c.write(1, append(c.lines(1, 2, 3), strings.Split(line, "\n")...)...)
		if err := c.try(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	// Equal weights in one group are a majority, and the log names ineffective settings.
	c.write(1, append(c.lines(1, 2, 3), "group.1=1:2:3", "weight.1=1", "connectToLearnerMasterLimit=4",
		"localSessionsEnabled=true", "localSessionsUpgradingEnabled=true")...)
	c.start(1)
	c.says(1, "settings without effect", "connectToLearnerMasterLimit", "localSessionsEnabled: has no effect", "localSessionsUpgradingEnabled: has no effect")
	c.write(2, append(c.lines(1, 2, 3), "localSessionsEnabled=true")...)
	c.start(2)
	c.says(2, "localSessionsEnabled: has no effect")
}
