package recovery

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

func TestTwoOfThreeAreLost(t *testing.T)  { testLostMajority(t, 3) }
func TestThreeOfFiveAreLost(t *testing.T) { testLostMajority(t, 5) }

// testLostMajority destroys the first servers, a majority. One of the survivors has been
// down and lags behind: it must not be the one that is recovered.
func testLostMajority(t *testing.T, n int) {
	t.Parallel()
	process.Needed(t)
	e := newEnsemble(t, n)
	var all, lost, left []int
	for id := 1; id <= n; id++ {
		all = append(all, id)
		if id <= n/2+1 {
			lost = append(lost, id)
		} else {
			left = append(left, id)
		}
	}
	best, behind := left[0], left[len(left)-1]
	e.start(all...)
	c := e.connect(best)
	old, password := c.Session, c.Password
	write(t, c, 0, 50)
	must.Do(t, c.Create("/lock", nil, proto.ModeEphemeral))
	if behind != best {
		e.kill(behind)
		c = reconnected(t, e, best, c)
		write(t, c, 50, 100)
	}
	running := e.running()
	refuses(t, e, "in use", "recover", "--yes", e.config(best))
	e.kill(running...)
	for _, id := range lost {
		e.empty(id)
	}

	e.start(best) // doesn't serve: two thirds of the votes are gone
	if _, err := process.Connect(e.servers[best-1].Addr, 0, nil, 2*time.Second); err == nil {
		t.Error("a minority serves")
	}
	e.kill(best)
	if best != behind {
		refuses(t, e, "more advanced", "recover", "--yes", "--compare", e.data(best), e.config(behind))
	}
	refuses(t, e, "nothing was changed", "recover", e.config(best))
	before := e.mustZkgo("recover", "--dry-run", e.config(best))
	if again := e.mustZkgo("recover", "--dry-run", e.config(best)); again != before || !strings.Contains(before, "1 session") {
		t.Errorf("looking changes something:\n%s\n%s", before, again)
	}
	interrupt(t, e, best)
	out := e.mustZkgo("recover", "--yes", e.config(best))
	m := regexp.MustCompile(`New ensemble ([0-9a-f]{32})`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal(out)
	}

	e.start(best)
	c = e.connect(best)
	check(t, c, n)
	if _, err := process.Connect(e.servers[best-1].Addr, old, password, timeout); !errors.Is(err, proto.ErrSessionExpired) {
		t.Errorf("the old session: %v", err)
	}
	if _, _, err := c.Get("/lock"); !errors.Is(err, proto.ErrNoNode) {
		t.Errorf("an ephemeral of the old ensemble: %v", err)
	}
	write(t, c, 100, 150)

	if best != behind { // in its old state it is refused, and says so
		e.start(behind)
		says(t, e.servers[behind-1], "belongs to another ensemble", 1)
		e.kill(behind)
		if out := e.mustZkgo("recover", "--yes", "--rejoin", m[1], e.config(behind)); !strings.Contains(out, "before-recovery-") {
			t.Error(out)
		}
		e.start(behind)
	}
	e.start(lost...) // with empty disks
	for _, id := range all {
		c := e.connect(id)
		if _, err := c.Do(proto.OpSync, &proto.SyncRequest{Path: "/"}); err != nil {
			t.Fatalf("server %d: %v", id, err)
		}
		if data, _, err := c.Get("/w149"); err != nil || string(data) != "149" {
			t.Errorf("server %d: %q, %v", id, data, err)
		}
	}
	// The new ensemble can lose a minority.
	says(t, e.servers[best-1], "a vote", n-1)
	e.kill(best)
	c = e.connect(lost[0])
	if err := c.Create("/after", nil, proto.ModePersistent); err != nil {
		t.Errorf("without the recovered server: %v", err)
	}
}

// interrupt kills the command several times while it runs.
func interrupt(t *testing.T, e *ensemble, id int) {
	t.Helper()
	for range 8 {
		cmd := exec.Command(process.Binary(t), "recover", "--yes", e.config(id))
		must.Do(t, cmd.Start())
		time.AfterFunc(time.Duration(rand.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		e.mustZkgo("recover", "--dry-run", e.config(id))
	}
}

// running returns the ids of the running servers.
func (e *ensemble) running() (ids []int) {
	for i, s := range e.servers {
		if s != nil {
			ids = append(ids, i+1)
		}
	}
	return ids
}

// reconnected returns c, or another connection of its session if a leader change closed
// c's connection.
func reconnected(t *testing.T, e *ensemble, id int, c *process.Client) *process.Client {
	t.Helper()
	if _, err := c.Do(proto.OpSync, &proto.SyncRequest{Path: "/"}); err == nil {
		return c
	}
	return e.attach(id, c)
}

func write(t *testing.T, c *process.Client, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := c.Create(fmt.Sprint("/w", i), fmt.Append(nil, i), proto.ModePersistent); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
}

// check verifies that no acknowledged write is missing.
func check(t *testing.T, c *process.Client, n int) {
	t.Helper()
	last := 50
	if n > 3 {
		last = 100
	}
	for i := range last {
		if data, _, err := c.Get(fmt.Sprint("/w", i)); err != nil || string(data) != fmt.Sprint(i) {
			t.Errorf("/w%d: %q, %v", i, data, err)
		}
	}
}

// refuses runs a command that must fail.
func refuses(t *testing.T, e *ensemble, why string, args ...string) {
	t.Helper()
	if out, err := e.zkgo(args...); err == nil || !strings.Contains(out, why) {
		t.Errorf("zkgo %v: %v\n%s\nwant: %s", args, err, out, why)
	}
}

// says waits until a server has printed a text at least that often.
func says(t *testing.T, s *process.Server, what string, often int) {
	t.Helper()
	wait.Eventually(t, fmt.Sprintf("the server says %q %d times", what, often), func() bool { return strings.Count(s.Output(), what) >= often })
}
