package ensemble

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// TestIDsFrom0To255 runs servers with the lowest and the highest ids that ZooKeeper
// supports. They fail over, leave and rejoin, and their data can be inspected, restored and
// recovered.
func TestIDsFrom0To255(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]int{{0, 1, 2}, {253, 254, 255}} {
		t.Run(fmt.Sprint(ids), func(t *testing.T) {
			t.Parallel()
			testIDs(t, ids)
		})
	}
}

func testIDs(t *testing.T, ids []int) {
	c := clusterOf(t, ids, reconfigurable...)
	for _, id := range ids {
		c.command("config", "check", c.writeList(id, ids))
	}
	c.start(ids...)
	c.await(ids...)
	c.sessions(ids...)

	lead := c.leader()
	c.kill(lead)
	if next := c.leader(); next == lead {
		t.Fatalf("server %d leads after it was killed", lead)
	}
	c.start(lead)
	c.await(ids...)

	first, second := ids[0], ids[1]
	c.mustReconfig(second, "", fmt.Sprint(first), "")
	if text := c.config(second); strings.Contains(text, fmt.Sprintf("server.%d=", first)) {
		t.Fatalf("server %d is still a member: %q", first, text)
	}
	c.mustReconfig(second, c.nodes[first].line("participant"), "", "")
	c.await(ids...)
	if text := c.config(first); !strings.HasPrefix(text, fmt.Sprintf("server.%d=", first)) {
		t.Fatalf("the membership: %q", text)
	}
	c.sessions(ids...)

	// Only the server with the lowest id is left.
	c.stop(ids...)
	data := filepath.Join(c.nodes[first].dir, "data")
	c.command("inspect", "verify", data)
	if out := c.command("inspect", "log", data); !strings.Contains(out, fmt.Sprintf("/from-%d-", first)) {
		t.Errorf("inspect log does not show the writes through server %d:\n%s", first, out)
	}
	c.writeList(first, []int{first}, "standaloneEnabled=false")
	if out := c.command("recover", "--yes", c.nodes[first].cfg()); !strings.Contains(out, fmt.Sprintf(": server %d of", first)) {
		t.Errorf("recover does not name server %d:\n%s", first, out)
	}
	c.start(first)
	c.await(first)
	c.sessions(first)
}

// writeList writes the configuration of a server and returns its path.
func (c *cluster) writeList(id int, ids []int, lines ...string) string {
	c.t.Helper()
	c.write(id, append(c.lines(ids...), lines...)...)
	return c.nodes[id].cfg()
}

// command runs zkgo and returns its output.
func (c *cluster) command(args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), process.Binary(c.t), args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("zkgo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// sessions begins a session on every server and writes with it.
func (c *cluster) sessions(ids ...int) {
	c.t.Helper()
	for _, id := range ids {
		var session int64
		c.eventually(fmt.Sprintf("a write through server %d", id), func() bool {
			cl, err := process.Connect(c.nodes[id].addr(), 0, nil, 30*time.Second)
			if err != nil {
				return false
			}
			defer cl.Close()
			session = cl.Session
			err = cl.Create(fmt.Sprintf("/from-%d-%x", id, session), nil, 0)
			return err == nil
		})
		if session == 0 || int(uint64(session)>>56) != id {
			c.t.Fatalf("session %#x of server %d", session, id)
		}
	}
}
