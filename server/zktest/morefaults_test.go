package zktest_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// We should be able to inject faults into a handshake: it's lost, its reply is lost, it's
// delayed, or the server reports that the session has expired.
func TestHandshakeFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zs := zktest.Run(t)
		hello := zktest.Match{Op: proto.OpCreateSession}
		lost := zs.LoseNext(hello)
		if resp, err := shakeHands(t, zs, 0); err == nil {
			t.Errorf("a lost handshake is answered: %+v", resp)
		}
		if !lost.Happened() || len(zs.Sessions()) != 0 {
			t.Errorf("sessions: %+v", zs.Sessions())
		}
		zs.LoseReply(hello)
		if resp, err := shakeHands(t, zs, 0); err == nil {
			t.Errorf("the reply is not lost: %+v", resp)
		}
		zs.Wait("the session that no client knows", func() bool { return len(zs.Sessions()) == 1 })
		zs.DelayNext(hello, 5*time.Second) // after ten seconds the server drops clients without a session
		begun := time.Now()
		resp, err := shakeHands(t, zs, 0)
		if d := time.Since(begun); err != nil || resp.SessionID == 0 || d != 5*time.Second {
			t.Errorf("%+v, %v after %v", resp, err, d)
		}
		zs.FailNext(zktest.Match{Op: proto.OpCreateSession, Session: resp.SessionID}, proto.ErrSessionExpired)
		if other, err := shakeHands(t, zs, 0); err != nil || other.SessionID == 0 {
			t.Errorf("another client met the fault: %+v, %v", other, err)
		}
		if again, err := shakeHands(t, zs, resp.SessionID); err != nil || again.SessionID != 0 || again.TimeOut != 0 {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// shakeHands connects and returns the server's response.
func shakeHands(t *testing.T, zs *zktest.Server, session int64) (resp proto.ConnectResponse, err error) {
	t.Helper()
	nc, err := zs.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	req := proto.ConnectRequest{TimeOut: 30_000, SessionID: session, Passwd: make([]byte, proto.PasswordSize)}
	if _, err := nc.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
		t.Fatal(err)
	}
	frame, err := (&raw{t: t, nc: nc}).frame()
	if err != nil {
		return resp, err
	}
	r := proto.NewReader(frame)
	resp.Decode(&r)
	return resp, r.Err()
}

// Slow connections should delay data in both directions.
func TestSlowConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zs := zktest.Run(t)
		c, other := rawConnect(t, zs), rawConnect(t, zs)
		took := func(c *raw) time.Duration {
			begun := time.Now()
			c.must(proto.OpGetData, &proto.GetDataRequest{Path: "/"})
			return time.Since(begun)
		}
		restore := zs.SlowConnection(c.session, time.Second, 0)
		if d, fast := took(c), took(other); d < 2*time.Second || fast != 0 {
			t.Errorf("a second each way: %v, for the other client %v", d, fast)
		}
		restore()
		if d := took(c); d != 0 {
			t.Errorf("afterwards %v", d)
		}
		restore = zs.SlowConnections(0, 100)
		if d := took(other); d < 500*time.Millisecond || d > 5*time.Second {
			t.Errorf("a hundred bytes at a hundred a second: %v", d)
		}
		late := rawConnect(t, zs)
		begun := time.Now()
		go zs.Advance(time.Minute)
		if err := late.send(proto.OpGetData, &proto.GetDataRequest{Path: "/"}); err != nil {
			t.Fatal(err)
		}
		if _, err := late.frame(); err != nil || time.Since(begun) > 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		restore()
		if d := took(late); d != 0 {
			t.Errorf("afterwards %v", d)
		}
	})
}

// A slow link between servers should slow down the writes that need it.
func TestSlowLink(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		lead := cl.Leader()
		write := func() time.Duration {
			begun := time.Now()
			rawConnect(t, lead).create("/n-", proto.ModePersistentSequential)
			return time.Since(begun)
		}
		var restores []func()
		for _, s := range cl.Servers() {
			if s != lead {
				restores = append(restores, cl.SlowLink(lead.ID(), s.ID(), 50*time.Millisecond))
			}
		}
		if d := write(); d < 200*time.Millisecond { // two writes, one round trip each
			t.Errorf("a session and a write over slow links: %v", d)
		}
		cl.Partition([]int{lead.ID(), 1, 2, 3})
		cl.Heal()
		if d := write(); d < 200*time.Millisecond {
			t.Errorf("a partition has made slow links fast: %v", d)
		}
		for _, restore := range restores {
			restore()
		}
		if d := write(); d > 100*time.Millisecond {
			t.Errorf("afterwards %v", d)
		}
	})
}

// FailAll should fail all matching requests until it's cancelled.
func TestFailAll(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := rawConnect(t, zs)
	fault := zs.FailAll(zktest.Match{Op: proto.OpGetData}, proto.ErrConnectionLoss)
	for range 3 {
		if code, err := c.call(proto.OpGetData, &proto.GetDataRequest{Path: "/"}); code != proto.ErrConnectionLoss || err != nil {
			t.Error(code, err)
		}
	}
	if !fault.Happened() {
		t.Error("Happened returned false")
	}
	fault.Cancel()
	c.must(proto.OpGetData, &proto.GetDataRequest{Path: "/"})
}

// Read-only mode on a standalone server and on a member: clients that ask for it should be
// able to read.
func TestReadOnlyByOneCall(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { inCluster(t, n, readOnlyByOneCall) })
	}
}

func readOnlyByOneCall(t *testing.T, cl *zktest.Cluster) {
	zs := cl.Servers()[0]
	zs.Set("/a", "1")
	c := rawConnect(t, zs)
	back := zs.ReadOnly()
	if b, err := c.frame(); err == nil {
		t.Errorf("a client with a session is kept: %x", b)
	}
	resp, ro := readOnlyClient(t, zs)
	if !resp.ReadOnly || resp.SessionID == 0 {
		t.Errorf("%+v", resp)
	}
	ro.must(proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
	if code, err := ro.call(proto.OpCreate, &proto.CreateRequest{Path: "/b", ACL: proto.OpenACL()}); code != proto.ErrNotReadOnly {
		t.Error(code, err)
	}
	back()
	rawConnect(t, zs).create("/c", proto.ModePersistent)
	if _, err := ro.frame(); err == nil {
		t.Error("a read-only session outlives the mode")
	}
}

// readOnlyClient connects a client that accepts read-only mode.
func readOnlyClient(t *testing.T, zs *zktest.Server) (resp proto.ConnectResponse, c *raw) {
	t.Helper()
	nc, err := zs.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	req := proto.ConnectRequest{TimeOut: 30_000, Passwd: make([]byte, proto.PasswordSize), HasReadOnly: true, ReadOnly: true}
	if _, err := nc.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
		t.Fatal(err)
	}
	c = &raw{t: t, nc: nc}
	frame, err := c.frame()
	if err != nil {
		t.Fatal(err)
	}
	r := proto.NewReader(frame)
	if resp.Decode(&r); r.Err() != nil {
		t.Fatal(r.Err())
	}
	c.session = resp.SessionID
	return resp, c
}

// A four-letter word should not be part of a recording.
func TestRecordingOfAWord(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	rec := zs.Record(zktest.Match{})
	nc, err := zs.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := binary.Write(nc, binary.BigEndian, []byte("ruok")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if _, err := nc.Read(b); err != nil || string(b) != "imok" || len(rec.Lines()) > 0 {
		t.Errorf("%q %v %v", b, err, rec)
	}
}
