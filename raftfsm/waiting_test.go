package raftfsm

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

func (l *logText) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.b.String()), "\n")
}

func (l *logText) count(s string) (n int) {
	for _, line := range l.lines() {
		if strings.Contains(line, s) {
			n++
		}
	}
	return n
}

// TestWaitingIsReported starts one server of three, then another. The log says for each
// server why it waits, again when that changes, and rarely when it doesn't.
func TestWaitingIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const report = "waiting for the ensemble, not serving clients"
		c := newCluster(t, 3)
		var log logText
		c.start(1, log.tune)
		time.Sleep(ensemble.WaitsBefore - time.Second)
		if log.contains(report) {
			t.Errorf("reported at once:\n%s", log.b.String())
		}
		time.Sleep(10 * time.Second)
		for _, want := range []string{"level=WARN", "1 of 3 answer, 2 are needed", `server.2="s2:2888: `, `server.3="s3:2888: `} {
			if !log.contains(want) {
				t.Errorf("no %q in\n%s", want, log.b.String())
			}
		}
		long := cost.InShort(5*time.Minute, 20*time.Minute)
		time.Sleep(long)
		if n := log.count(report); n < cost.InShort(2, 4) || n > 10 {
			t.Errorf("%d reports in %v:\n%s", n, long, log.b.String())
		}
		c.start(2)
		c.rigs[1].awaitServed()
		c.stop(2)
		synctest.Wait()
		before := log.count(report)
		time.Sleep(10 * time.Second)
		if log.count(report) != before+1 {
			t.Errorf("no report when the ensemble was lost:\n%s", log.b.String())
		}
	})
}

// TestStaggeredStartIsQuiet starts the third of three servers after the others have
// formed the ensemble. That is how people start servers by hand, and it should cause no
// warning.
func TestStaggeredStartIsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		var log logText
		c.start(1, log.tune)
		time.Sleep(ensemble.WaitsBefore / 2)
		c.start(2, log.tune)
		c.rigs[1].awaitServed()
		time.Sleep(4 * time.Second)
		c.start(3, log.tune)
		c.rigs[3].awaitServed()
		c.settled()
		time.Sleep(10 * time.Second)
		for _, line := range log.lines() {
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") || strings.Contains(line, "was replaced") {
				t.Error(line)
			}
		}
		if !log.contains("server 3 joins for the first time") {
			t.Errorf("nothing of server 3:\n%s", log.b.String())
		}
	})
}

// TestElectionsAreQuiet stops the majority. The server's own report is in the log, and
// Raft's lines about elections are not.
func TestElectionsAreQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		var log logText
		c.startAll(log.tune)
		c.settled()
		c.kill(2)
		c.kill(3)
		time.Sleep(time.Minute)
		for _, line := range log.lines() {
			if strings.Contains(line, "raft: ") {
				t.Error(line)
			}
		}
		if !log.contains("2 are needed") {
			t.Errorf("no report:\n%s", log.b.String())
		}
	})
}

// TestClosingIsQuiet starts and stops ensembles: an orderly stop is not a Raft error.
// The test runs in real time, where goroutines interleave in more ways.
func TestClosingIsQuiet(t *testing.T) {
	t.Parallel()
	for range cost.InShort(3, 10) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3)
			var log logText
			c.startAll(log.tune)
			for id := range uint64(3) {
				c.stop(id + 1)
			}
			for _, line := range log.lines() {
				if strings.Contains(line, "raft: ") || strings.Contains(line, "level=ERROR") {
					t.Error(line)
				}
			}
		})
	}
}
