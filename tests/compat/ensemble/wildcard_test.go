package ensemble

import (
	"fmt"
	"strings"
	"testing"
)

// TestWildcards runs servers that each have 0.0.0.0 in their own line, as in many
// containers. The membership has the addresses from the other servers' files, whichever
// server leads; a reconfig moves a client port without a restart, and survives one.
func TestWildcards(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, reconfigurable...)
	for id := 1; id <= 3; id++ {
		lines := c.lines(1, 2, 3)
		lines[id-1] = strings.Replace(lines[id-1], "127.0.0.1", "0.0.0.0", 1)
		c.write(id, lines...)
	}
	c.start(1, 2, 3)
	c.await(1, 2, 3)
	first := c.leader()
	text := c.config(first%3 + 1)
	if strings.Contains(text, "=0.0.0.0:") {
		t.Errorf("the membership has a wildcard for a server: %q", text)
	}
	c.kill(first)
	lead := c.leader()
	if got := c.config(lead); got != text {
		t.Errorf("another leader has changed the membership to %q, was %q", got, text)
	}
	moved := 6 - first - lead
	n := c.nodes[moved]
	n.client = c.freePorts()[0]
	c.mustReconfig(lead, n.line("participant"), "", "")
	c.await(moved)
	if got := c.config(moved); !strings.Contains(got, n.line("participant")) {
		t.Errorf("the membership %q does not have what was asked for, %q", got, n.line("participant"))
	}
	c.start(first)
	c.await(first)
	c.stop(moved)
	c.start(moved)
	c.await(moved)
	for id := 1; id <= 3; id++ {
		if log := c.output(id); strings.Contains(log, "could not be changed") {
			t.Errorf("server %d: %s", id, log)
		}
	}
	if got := c.config(lead); !strings.Contains(got, fmt.Sprint(";127.0.0.1:", n.client)) {
		t.Errorf("after a restart the membership is %q", got)
	}
}
