package zktest_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestExpireSession(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c, events := dial(t, zs.Addrs(), net.DialTimeout)
	create(t, c, "/a", "", zk.FlagEphemeral)
	zs.ExpireSession(c.SessionID())
	if zs.Exists("/a") {
		t.Error("the ephemeral znode still exists")
	}
	awaitState(t, events, zk.StateExpired)
	awaitState(t, events, zk.StateHasSession)
}

func TestDropConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zs := zktest.Run(t)
		c, events := dial(t, []string{"127.0.0.1"}, zs.Dialer())
		id := c.SessionID()
		for i, drop := range []func(){func() { zs.DropConnection(id) }, zs.DropConnections} {
			accept := zs.RefuseConnections()
			drop()
			if got := zs.Sessions(); len(got) != 1 || got[0].Connected {
				t.Fatalf("%d: %+v", i, got)
			}
			awaitState(t, events, zk.StateDisconnected)
			accept()
			awaitState(t, events, zk.StateHasSession)
			if c.SessionID() != id {
				t.Error("another session")
			}
			zs.WaitConnected(id, true)
		}
		c.Close()
	})
}

func TestRefuseConnections(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	stays := rawConnect(t, zs)
	accept := zs.RefuseConnections()
	if _, err := zs.Dial(); err == nil {
		t.Error("a client was accepted without a socket")
	}
	nc, err := net.Dial("tcp", zs.Addrs()[0])
	if err == nil {
		defer nc.Close()
		if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := nc.Read(make([]byte, 1)); n > 0 || errors.Is(err, net.ErrClosed) || isTimeout(err) {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	stays.create("/a", proto.ModePersistent)
	accept()
	rawConnect(t, zs)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// A hanging connection should pass no data, and lose none.
func TestHangConnection(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"pipe", "tcp"} {
		zs := zktest.Run(t)
		var c *raw
		if transport == "tcp" {
			c = rawTCP(t, zs)
		} else {
			c = rawConnect(t, zs)
		}
		c.must(proto.OpExists, &proto.ExistsRequest{Path: "/", Watch: true})
		resume := zs.HangConnection(c.session)
		read := make(chan error, 1)
		if err := c.send(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()}); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := c.frame()
			read <- err
		}()
		zs.Set("/", "an event")
		// Once another client gets a reply, we know that the server had enough time.
		rawConnect(t, zs).create("/b", proto.ModePersistent)
		select {
		case err := <-read:
			t.Errorf("%s: data arrived, error %v", transport, err)
		default:
		}
		if zs.Exists("/a") {
			t.Errorf("%s: the server has received data", transport)
		}
		resume()
		if err := <-read; err != nil {
			t.Errorf("%s: %v", transport, err)
		}
		zs.WaitExists("/a")
	}
}

func TestFailNext(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	create(t, c, "/a", "1", 0)
	fault := zs.FailNext(zktest.Match{Op: proto.OpSetData, Path: "/a", Nth: 2}, proto.ErrNoAuth)
	never := zs.FailNext(zktest.Match{Op: proto.OpSetData, Path: "/b"}, proto.ErrNoAuth)
	for i, want := range []error{nil, zk.ErrNoAuth, nil} {
		if fault.Happened() != (i == 2) {
			t.Errorf("before %d: %v", i, fault.Happened())
		}
		if _, err := c.Set("/a", []byte{byte('0' + i)}, -1); err != want {
			t.Errorf("%d: %v", i, err)
		}
		if i == 1 && zs.Get("/a") != "0" {
			t.Error("a refused request was executed")
		}
	}
	fault.Wait()
	never.Cancel()
	create(t, c, "/b", "", 0)
	if _, err := c.Set("/b", nil, -1); err != nil || never.Happened() {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLoseReplyAndLoseNext(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	for path, executed := range map[string]bool{"/done": true, "/undone": false} {
		c := connect(t, zs)
		m := zktest.Match{Op: proto.OpCreate, Session: c.SessionID()}
		if executed {
			zs.LoseReply(m)
		} else {
			zs.LoseNext(m)
		}
		if _, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != zk.ErrConnectionClosed {
			t.Errorf("%s: %v", path, err)
		}
		if zs.Exists(path) != executed {
			t.Errorf("%s: executed %v", path, !executed)
		}
	}
}

func TestDelayNext(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c, other := connect(t, zs), connect(t, zs)
	fault := zs.DelayNext(zktest.Match{Path: "/a", Session: c.SessionID()}, time.Hour)
	done := make(chan error, 1)
	go func() {
		_, err := c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
		done <- err
	}()
	fault.Wait()
	create(t, other, "/b", "", 0)
	if zs.Exists("/a") {
		t.Error("not delayed")
	}
	zs.Advance(time.Hour)
	if err := <-done; err != nil || !zs.Exists("/a") {
		t.Error(err)
	}
}

// A delay should end even if the clock moves as soon as the request is delayed.
func TestDelayIsCountedFromTheFault(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := rawConnect(t, zs)
	if err := c.nc.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		fault := zs.DelayNext(zktest.Match{}, time.Hour)
		if err := c.send(proto.OpExists, &proto.ExistsRequest{Path: "/"}); err != nil {
			t.Fatal(err)
		}
		fault.Wait()
		zs.Advance(time.Hour)
		if _, err := c.frame(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAServerClosesWithFaultsPending(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	delayed, hung := rawConnect(t, zs), rawConnect(t, zs)
	fault := zs.DelayNext(zktest.Match{}, time.Hour)
	if err := delayed.send(proto.OpExists, &proto.ExistsRequest{Path: "/"}); err != nil {
		t.Fatal(err)
	}
	fault.Wait()
	zs.HangConnection(hung.session)
	zs.Close()
}

// We should write every fault to the test's log.
func TestFaultsAreLogged(t *testing.T) {
	t.Parallel()
	r := &recordingTB{TB: t}
	zs := zktest.Run(r)
	c := rawConnect(t, zs)
	zs.FailNext(zktest.Match{}, proto.ErrNoAuth)
	if code, err := c.call(proto.OpExists, &proto.ExistsRequest{Path: "/"}); code != proto.ErrNoAuth || err != nil {
		t.Fatal(code, err)
	}
	zs.HangConnection(c.session)()
	zs.RefuseConnections()()
	zs.DropConnection(c.session)
	zs.ExpireSession(c.session)
	zs.Advance(time.Second)
	log := r.end()
	for _, want := range []string{"planned", "%v %s", "hangs", "works again", "refused", "accepted", "dropped", "expires", "clock moves"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in %q", want, log)
		}
	}
}
