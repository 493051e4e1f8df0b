package learner

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// members is the configuration that a leader of ZooKeeper 3.5 and later sends.
const members = "server.1=zk1:2888:3888:participant;0.0.0.0:2181\nversion=0"

// client is a learner that follows a leader, in a test.
type client struct {
	*Conn
	recorder
	synced chan struct{}
	ended  chan error // of Follow
}

func (c *client) Synced() error { close(c.synced); return nil }

// clientOf runs a learner of a leader that sends config, brings it up to date, and then
// continues as play says. The leader closes the connection after that.
func clientOf(t *testing.T, cfg Config, config string, play func(*leader)) *client {
	t.Helper()
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l := &leader{t, there, bufio.NewReader(there)}
		l.accept(1, 0, 0)
		l.send(zab.Packet{Kind: zab.KindDiff}, zab.Packet{Kind: zab.KindNewLeader, Zxid: 1 << 32, Data: []byte(config)})
		l.expect(zab.Packet{Kind: zab.KindAck, Zxid: 1 << 32})
		l.send(zab.Packet{Kind: zab.KindUpToDate})
		l.expect(zab.Packet{Kind: zab.KindAck, Zxid: 1 << 32})
		play(l)
		_ = there.Close()
	}()
	cfg.Addrs, cfg.ID = []string{"zk1:2888"}, 200
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return here, nil }
	c := &client{synced: make(chan struct{}), ended: make(chan error, 1)}
	c.Conn = must.Get(Dial(t.Context(), cfg, 0))(t)
	if err := c.Request(Request{Op: proto.OpSync}); !errors.Is(err, ErrNotSynced) || !errors.Is(err, ErrNotSent) {
		t.Errorf("before the state is exact: %v", err)
	}
	if err := c.Revalidate(7, 1); !errors.Is(err, ErrNotSynced) || !errors.Is(err, ErrNotSent) {
		t.Errorf("before the state is exact: %v", err)
	}
	go func() { c.ended <- c.Follow(0, c) }()
	<-c.synced
	t.Cleanup(func() { _ = c.Close(); <-done })
	return c
}

// end waits for the end of Follow, and checks its error and the calls.
func (c *client) end(t *testing.T, want string, lines ...string) {
	t.Helper()
	if err := <-c.ended; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Follow: %v, want %q", err, want)
	}
	if !slices.Equal(c.lines, lines) {
		t.Errorf("received %q, want %q", c.lines, lines)
	}
}

// expectBytes checks the bytes of the next packet.
func (l *leader) expectBytes(want []byte) {
	l.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(l.r, got); err != nil || !bytes.Equal(got, want) {
		l.t.Errorf("the learner sent %x (%v), want %x", got, err, want)
	}
}

// validity is the data of an answer to REVALIDATE.
func validity(session int64, valid byte) []byte { return append(proto.AppendLong(nil, session), valid) }

func bodyOf(r proto.Record) []byte { return r.Append(nil) }

// closed is how Follow ends when the leader has played.
const closed = "the leader closed the connection"

// TestRequest checks every byte of a request. The list of identities is never null.
func TestRequest(t *testing.T) {
	t.Parallel()
	create := bodyOf(&proto.CreateRequest{Path: "/a", Data: []byte("x"), ACL: proto.OpenACL()})
	request := func(session int64, cxid, op int32, body, identities []byte) []byte {
		b := proto.AppendLong(proto.AppendInt(nil, 1), -1)
		data := append(proto.AppendInt(proto.AppendInt(proto.AppendLong(nil, session), cxid), op), body...)
		return append(proto.AppendBuffer(b, data), identities...)
	}
	none := []byte{0, 0, 0, 0}
	two := proto.AppendInt(nil, 2)
	for _, s := range []string{"ip", "127.0.0.1", "digest", "bob:x"} {
		two = proto.AppendString(two, s)
	}
	c := clientOf(t, Config{}, members, func(l *leader) {
		l.expectBytes(request(0x100, 7, 1, create, two))
		l.expectBytes(request(-5, 0, -10, []byte{0, 0, 0x75, 0x30}, none))
		l.expectBytes(request(-5, 9, -11, nil, none))
		l.send(zab.Packet{Kind: zab.KindInform, Data: createTxn(1<<32+1, "/a")})
	})
	must.Do(t, c.Request(Request{0x100, 7, proto.OpCreate, create, []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "digest", ID: "bob:x"}}}))
	must.Do(t, c.Request(Request{-5, 0, proto.OpCreateSession, proto.AppendInt(nil, 30_000), nil}))
	must.Do(t, c.Request(Request{-5, 9, proto.OpCloseSession, nil, nil}))
	if got := c.Members(); got != members {
		t.Errorf("the configuration is %q", got)
	}
	c.end(t, closed, "create 0x100000001 [/a]")
}

// TestRefusesARequest lists the requests that a leader would not answer, or would close the
// connection for. We should send none.
func TestRefusesARequest(t *testing.T) {
	t.Parallel()
	create2 := bodyOf(&proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()})
	multi := func(op proto.Op, r proto.Record) []byte {
		return bodyOf(&proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/a"}}, {Op: op, Req: r}}})
	}
	for _, c := range []struct {
		name, config string
		request      Request
		want         error
	}{
		{"a read", members, Request{Op: proto.OpGetData, Body: create2}, ErrUnknownOp},
		{"a ping", members, Request{Op: proto.OpPing}, ErrUnknownOp},
		{"no operation", members, Request{Op: 77}, ErrUnknownOp},
		{"create2 for 3.4", "", Request{Op: proto.OpCreate2, Body: create2}, ErrUnknownOp},
		{"create2 in a multi for 3.4", "", Request{Op: proto.OpMulti, Body: multi(proto.OpCreate2, &proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()})}, ErrUnknownOp},
		{"no body", members, Request{Op: proto.OpCreate}, ErrBody},
		{"half a body", members, Request{Op: proto.OpCreate, Body: create2[:9]}, ErrBody},
		{"half a multi", members, Request{Op: proto.OpMulti, Body: multi(proto.OpCheck, &proto.CheckVersionRequest{Path: "/a"})[:20]}, ErrBody},
		{"a read in a multi", members, Request{Op: proto.OpMulti, Body: multi(proto.OpGetData, &proto.GetDataRequest{Path: "/a"})}, ErrBody},
		{"no path in a multi", members, Request{Op: proto.OpMulti, Body: multi(proto.OpCheck, &proto.CheckVersionRequest{Path: proto.NullString})}, ErrBody},
		{"a session without a timeout", members, Request{Op: proto.OpCreateSession}, ErrBody},
		{"a long body", members, Request{Op: proto.OpSetData, Body: bodyOf(&proto.SetDataRequest{Path: "/a", Data: make([]byte, 1000)})}, ErrTooLong},
		{"a long identity", members, Request{Op: proto.OpSync, Body: []byte{0, 0, 0, 0}, Identities: []proto.ID{{Scheme: strings.Repeat("x", 1001)}}}, ErrTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := clientOf(t, Config{MaxRequest: 1000}, c.config, func(l *leader) {
				l.expect(zab.Packet{Kind: zab.KindRequest, Zxid: -1, Data: append(make([]byte, 12), 0, 0, 0, 9, 0, 0, 0, 0)})
			})
			if err := l.Request(c.request); !errors.Is(err, c.want) || !errors.Is(err, ErrNotSent) {
				t.Errorf("%v, want %v", err, c.want)
			}
			must.Do(t, l.Request(Request{Op: proto.OpSync, Body: []byte{0, 0, 0, 0}}))
			l.end(t, closed)
		})
	}
}

// SYNC and REVALIDATE answer the questions in their order.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := clientOf(t, Config{}, members, func(l *leader) {
		for _, kind := range []zab.Kind{zab.KindRequest, zab.KindRevalidate, zab.KindRequest, zab.KindRevalidate} {
			if p, err := zab.ReadPacket(l.r, 100); err != nil || p.Kind != kind {
				l.t.Errorf("%v: %v", p.Kind, err)
			}
		}
		l.send(zab.Packet{Kind: zab.KindRevalidate, Data: validity(3, 1)}, zab.Packet{Kind: zab.KindSync}, zab.Packet{Kind: zab.KindSync}, zab.Packet{Kind: zab.KindRevalidate, Data: validity(-4, 0)}, zab.Packet{Kind: zab.KindSync})
	})
	path := bodyOf(&proto.SyncRequest{Path: "/"})
	must.Do(t, c.Request(Request{1, 5, proto.OpSync, path, nil}))
	must.Do(t, c.Revalidate(3, 30_000))
	must.Do(t, c.Request(Request{2, 6, proto.OpSync, path, nil}))
	must.Do(t, c.Revalidate(-4, 30_000))
	c.end(t, "unexpected SYNC", "session 0x3 true", "sync 0x1 5", "sync 0x2 6", "session -0x4 false")
}

func TestRefusesAnAnswer(t *testing.T) {
	t.Parallel()
	for want, data := range map[string][]byte{
		"unexpected REVALIDATE of session 0x8":     validity(8, 1),
		"malformed REVALIDATE: 8 bytes instead":    validity(7, 1)[:8],
		"malformed REVALIDATE: 10 bytes instead":   append(validity(7, 1), 0),
		"malformed REVALIDATE: 0 bytes instead of": nil,
	} {
		c := clientOf(t, Config{}, members, func(l *leader) {
			l.expect(zab.Packet{Kind: zab.KindRevalidate, Zxid: -1, Data: proto.AppendInt(proto.AppendLong(nil, 7), 30_000)})
			l.send(zab.Packet{Kind: zab.KindRevalidate, Data: data})
		})
		must.Do(t, c.Revalidate(7, 30_000))
		c.end(t, want)
	}
	c := clientOf(t, Config{}, members, func(l *leader) { l.send(zab.Packet{Kind: zab.KindRevalidate, Data: validity(7, 1)}) })
	c.end(t, "unexpected REVALIDATE of session 0x7")
}

// The answer to a ping lists the sessions that were used, in as many packets as necessary.
func TestTouches(t *testing.T) {
	t.Parallel()
	rounds := [][]Touch{{{7, 30_000}, {-8, 4000}}, nil, make([]Touch, maxTouches+1)}
	touched := func(to []Touch) []Touch {
		if len(to) > 0 {
			t.Error("what was touched before is still there")
		}
		to, rounds = append(to, rounds[0]...), rounds[1:]
		return to
	}
	c := clientOf(t, Config{Touched: touched}, members, func(l *leader) {
		l.send(zab.Packet{Kind: zab.KindPing, Zxid: 5})
		l.expect(zab.Packet{Kind: zab.KindPing, Zxid: 5, Data: proto.AppendInt(proto.AppendLong(proto.AppendInt(proto.AppendLong(nil, 7), 30_000), -8), 4000)})
		l.send(zab.Packet{Kind: zab.KindPing, Zxid: 6})
		l.expectBytes(zab.AppendPacket(nil, zab.Packet{Kind: zab.KindPing, Zxid: 6, Data: []byte{}})) // not null
		l.send(zab.Packet{Kind: zab.KindPing, Zxid: 7})
		l.expect(zab.Packet{Kind: zab.KindPing, Zxid: 7, Data: make([]byte, 12*maxTouches)})
		l.expect(zab.Packet{Kind: zab.KindPing, Zxid: 7, Data: make([]byte, 12)})
	})
	c.end(t, closed, "ping 0x5", "ping 0x6", "ping 0x7")
}

// A leader that stops reading ends the connection. After that, no request is sent.
func TestLeaderStopsReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		c := clientOf(t, Config{}, members, func(*leader) { <-stop })
		begin := time.Now()
		err := c.Request(Request{Op: proto.OpCloseSession})
		if took := time.Since(begin); err == nil || errors.Is(err, ErrNotSent) || took != 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		c.gone(t)
		c.end(t, "zk1:2888")
		close(stop)
	})
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		c := clientOf(t, Config{}, members, func(l *leader) { l.send(zab.Packet{Kind: zab.KindPing}); <-stop })
		begin := time.Now()
		c.end(t, "write pipe: i/o timeout")
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("the answer to a ping took %v", took)
		}
		c.gone(t)
		close(stop)
	})
}

// gone checks that the connection accepts no requests any more.
func (c *client) gone(t *testing.T) {
	t.Helper()
	if err := c.Request(Request{Op: proto.OpCloseSession}); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrNotSynced) {
		t.Error(err)
	}
}

// Requests of many goroutines, and the answers to pings, don't mix.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 50
	c := clientOf(t, Config{}, members, func(l *leader) {
		var writing sync.WaitGroup
		writing.Go(func() {
			for zxid := range int64(each) {
				l.send(zab.Packet{Kind: zab.KindPing, Zxid: zxid})
			}
		})
		got := map[zab.Kind]int{}
		for range clients*each*2 + each {
			p, err := zab.ReadPacket(l.r, 100)
			if err != nil {
				l.t.Error(err)
				break
			}
			got[p.Kind]++
		}
		writing.Wait()
		if want := fmt.Sprint(map[zab.Kind]int{zab.KindRequest: clients * each, zab.KindRevalidate: clients * each, zab.KindPing: each}); fmt.Sprint(got) != want {
			l.t.Errorf("got %v, want %v", got, want)
		}
	})
	var all sync.WaitGroup
	for session := range int64(clients) {
		all.Go(func() {
			for cxid := range int32(each) {
				if err := errors.Join(c.Request(Request{session, cxid, proto.OpCloseSession, nil, nil}), c.Revalidate(session, cxid)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := <-c.ended; !strings.Contains(err.Error(), closed) {
		t.Error(err)
	}
}
