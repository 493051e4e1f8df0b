package zktest_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestOverTCPAndWithoutASocket(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	addrs := zs.Addrs()
	if again := zs.Addrs(); len(addrs) != 1 || addrs[0] != again[0] {
		t.Fatalf("addresses %q, then %q", addrs, again)
	}
	tcp, _ := dial(t, addrs, net.DialTimeout)
	create(t, tcp, "/a", "1", 0)
	direct := connect(t, zs)
	if data, _, err := direct.Get("/a"); err != nil || string(data) != "1" {
		t.Errorf("%q %v", data, err)
	}
}

func TestCloseBeforeTheEnd(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	addr := zs.Addrs()[0]
	zs.Set("/a", "1")
	zs.Close()
	zs.Close()
	if nc, err := net.Dial("tcp", addr); err == nil {
		nc.Close()
		t.Error("the port is still open")
	}
	if _, err := zs.Dial(); err == nil {
		t.Error("a closed server accepts clients")
	}
	if got := zs.Get("/a"); got != "1" {
		t.Errorf("afterwards /a holds %q", got)
	}
}

func TestConfigurationIsTheServers(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t, zktest.WithTick(time.Second), zktest.WithConfig(func(c *server.Config) { c.MaxSessionTimeout = 7 * time.Second }))
	connect(t, zs)
	if got := zs.Sessions(); len(got) != 1 || got[0].Timeout != 7*time.Second || !got[0].Connected {
		t.Errorf("%+v", got)
	}
}

// recordingTB is a test that records errors instead of failing.
type recordingTB struct {
	testing.TB
	failed   bool
	log      strings.Builder
	cleanups []func()
}

func (r *recordingTB) Failed() bool            { return r.failed }
func (r *recordingTB) Helper()                 {}
func (r *recordingTB) Cleanup(f func())        { r.cleanups = append(r.cleanups, f) }
func (r *recordingTB) Logf(f string, _ ...any) { r.log.WriteString(f + "\n") }
func (r *recordingTB) end() string {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return r.log.String()
}

func TestLogsAppearOnFailureOnly(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		r := &recordingTB{TB: t}
		zs := zktest.Run(r)
		zs.Set("/a", "1")
		r.failed = failed
		if log := r.end(); strings.Contains(log, "server's log") != failed || strings.Contains(log, "znodes at the end") != failed {
			t.Errorf("failed %v: %q", failed, log)
		}
	}
	r := &recordingTB{TB: t}
	zktest.Run(r, zktest.WithLogs())
	if log := r.end(); log == "" {
		t.Error("WithLogs logs nothing")
	}
}

// After Advance, connected clients should be alive, and sessions of disconnected and
// hanging clients should have expired.
func TestAdvanceExpiresSessions(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	here, gone, hung := connect(t, zs), rawConnect(t, zs), rawConnect(t, zs)
	create(t, here, "/here", "", zk.FlagEphemeral)
	gone.create("/gone", proto.ModeEphemeral)
	hung.create("/hung", proto.ModeEphemeral)
	zs.DropConnection(gone.session)
	resume := zs.HangConnection(hung.session)
	zs.Advance(20 * time.Second)
	if got := zs.Ephemerals(); len(got) != 3 {
		t.Fatalf("before the time: %v", got)
	}
	zs.Advance(13 * time.Second)
	if got := zs.Ephemerals(); len(got) != 1 || got["/here"] != here.SessionID() {
		t.Fatalf("%v", got)
	}
	resume()
	for range 10 {
		zs.Advance(time.Hour)
	}
	if !zs.Exists("/here") {
		t.Error("a connected client expired")
	}
}

func TestAdvanceWithoutPings(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t, zktest.WithoutPings())
	rawConnect(t, zs).create("/a", proto.ModeEphemeral)
	zs.Advance(33 * time.Second)
	if zs.Exists("/a") {
		t.Error("a silent client lives")
	}
}

func TestAdvanceReapsContainersAndTTL(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	if _, err := c.CreateContainer("/box", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	create(t, c, "/box/a", "", 0)
	if err := c.Delete("/box/a", -1); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	zs.Advance(3 * time.Second)
	if zs.Exists("/box") || !zs.Exists("/ttl") {
		t.Errorf("after 3 s:\n%s", zs.Dump())
	}
	zs.Advance(3 * time.Second)
	if zs.Exists("/ttl") {
		t.Errorf("after 6 s:\n%s", zs.Dump())
	}
}

// Client and server should work in fake time without special support.
func TestInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zs := zktest.Run(t)
		c, other := connect(t, zs), rawConnect(t, zs)
		other.create("/lock", proto.ModeEphemeral) // its client never pings
		_, _, gone, err := c.ExistsW("/lock")
		if err != nil {
			t.Fatal(err)
		}
		id := c.SessionID()
		time.Sleep(time.Hour)
		if c.SessionID() != id || zs.Exists("/lock") {
			t.Error("an hour of pings did not keep the session, or a silent one lived")
		}
		<-gone
		other = rawConnect(t, zs)
		other.create("/lock", proto.ModeEphemeral)
		if _, _, gone, err = c.ExistsW("/lock"); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		zs.HangConnection(other.session)
		if e := <-gone; e.Type != zk.EventNodeDeleted {
			t.Errorf("%+v", e)
		}
		if d := time.Since(begun); d < 28*time.Second || d > 40*time.Second {
			t.Errorf("the session lived on for %v", d)
		}
		other2 := rawConnect(t, zs)
		other2.create("/lock", proto.ModeEphemeral)
		zs.DropConnection(other2.session)
		begun = time.Now()
		zs.Advance(40 * time.Second)
		if zs.Exists("/lock") || time.Since(begun) > time.Second {
			t.Error("Advance waited, or did nothing")
		}
		c.Close()
	})
}

func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	conn, _, err := zk.Connect(zs.Addrs(), 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	zs.ExpireSession(conn.SessionID())
	if zs.Exists("/worker") {
		t.Error("the worker is still registered")
	}
}
