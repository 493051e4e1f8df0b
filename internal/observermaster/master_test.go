package observermaster

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// pipes is a listener of pipes in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// rig is a Master of a tree that the test changes.
type rig struct {
	t       testing.TB
	cfg     Config
	l       *pipes
	m       *Master
	log     strings.Builder
	history *History
}

const tick = 2 * time.Second

func newRig(t testing.TB, limit int, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, l: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, history: NewHistory(limit)}
	r.cfg = Config{
		Tree: tree.New(), Sessions: session.NewTable(), History: r.history,
		WriteBody: func(w io.Writer, _ *tree.Snapshot, _ *session.Table) error {
			_, err := io.WriteString(w, "state")
			return err
		},
		Sync: func(done func(error)) error { done(nil); return nil },
		Tick: tick, InitLimit: 10, SyncLimit: 5, Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	if change != nil {
		change(&r.cfg)
	}
	r.m = New(r.cfg, r.l)
	go r.m.Serve()
	t.Cleanup(func() { _ = r.m.Close() })
	return r
}

// apply adds n transactions of size bytes.
func (r *rig) apply(n, size int) {
	r.cfg.Tree.Lock()
	defer r.cfg.Tree.Unlock()
	for range n {
		zxid := r.cfg.Tree.LastZxid() + 1
		r.cfg.Tree.Advance(zxid)
		r.history.Txn(zxid, make([]byte, size))
	}
}

// peer is the other side of a connection.
type peer struct {
	*rig
	net.Conn
	r *bufio.Reader
}

func (r *rig) dial() *peer {
	r.t.Helper()
	ours, theirs := net.Pipe()
	r.l.conns <- theirs
	r.t.Cleanup(func() { _ = ours.Close() })
	return &peer{r, ours, bufio.NewReader(ours)}
}

func (p *peer) send(kind zab.Kind, zxid int64, data []byte) {
	p.t.Helper()
	if _, err := p.Write(zab.AppendPacket(nil, zab.Packet{Kind: kind, Zxid: zxid, Data: data})); err != nil {
		p.t.Fatalf("sending %v: %v", kind, err)
	}
}

func (p *peer) expect(kind zab.Kind, zxid int64) zab.Packet {
	p.t.Helper()
	got, err := zab.ReadPacket(p.r, 1<<20)
	if err != nil || got.Kind != kind || got.Zxid != zxid {
		p.t.Fatalf("got %v 0x%x (%v), want %v 0x%x", got.Kind, got.Zxid, err, kind, zxid)
	}
	return got
}

// closed checks that the connection ends, for a reason that is in the log.
func (p *peer) closed(why string) {
	p.t.Helper()
	if b, err := io.ReadAll(p.r); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		p.t.Fatalf("%x %v", b, err)
	}
	synctest.Wait()
	if !strings.Contains(p.log.String(), why) {
		p.t.Errorf("the log does not say %q:\n%s", why, p.log.String())
	}
}

// register begins a connection.
func (p *peer) register(zxid int64) {
	p.t.Helper()
	p.send(zab.KindObserverInfo, 0, proto.AppendLong(proto.AppendInt(proto.AppendLong(nil, 9), zab.ProtocolVersion), 0))
	p.expect(zab.KindLeaderInfo, p.cfg.Tree.LastZxid()>>32<<32)
	p.send(zab.KindAckEpoch, zxid, proto.AppendInt(nil, -1))
}

// snap receives a snapshot.
func (p *peer) snap(zxid int64) {
	p.t.Helper()
	p.expect(zab.KindSnap, zxid)
	b := make([]byte, len("state")+4+len(zab.SnapshotSignature))
	if _, err := io.ReadFull(p.r, b); err != nil || !strings.HasSuffix(string(b), zab.SnapshotSignature) {
		p.t.Fatalf("%q %v", b, err)
	}
}

// upToDate ends the synchronization.
func (p *peer) upToDate() {
	p.t.Helper()
	p.expect(zab.KindNewLeader, p.cfg.Tree.LastZxid()>>32<<32)
	p.send(zab.KindAck, 0, nil)
	p.expect(zab.KindUpToDate, 0)
	p.send(zab.KindAck, 0, nil)
}

// TestSequence: an observer receives the state or the transactions that it lacks, then each new
// transaction, and the connection ends with the epoch.
func TestSequence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1<<20, nil)
		r.apply(3, 10)
		p := r.dial()
		p.register(0)
		p.snap(3)
		p.upToDate()
		r.apply(1, 10)
		p.expect(zab.KindInform, 4)
		q := r.dial()
		q.register(2)
		q.expect(zab.KindDiff, 4)
		for zxid := int64(3); zxid <= 4; zxid++ {
			q.expect(zab.KindProposal, zxid)
			q.expect(zab.KindCommit, zxid)
		}
		q.upToDate()
		synctest.Wait()
		if n := r.m.Observers(); n != 2 {
			t.Errorf("%d observers", n)
		}
		q.send(zab.KindRequest, 0, proto.AppendInt(proto.AppendInt(proto.AppendLong(nil, 1), 2), int32(proto.OpSync)))
		q.expect(zab.KindSync, 0)
		r.cfg.Tree.Lock()
		r.cfg.Tree.Advance(1 << 32)
		r.history.Txn(1<<32, []byte("x"))
		r.cfg.Tree.Unlock()
		p.closed("a new epoch has begun")
		q.closed("a new epoch has begun")
		if n := r.m.Observers(); n != 0 {
			t.Errorf("%d observers", n)
		}
	})
}

// TestPings: an observer hears from us each half tick, and one that we don't hear for syncLimit
// ticks is cut off.
func TestPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1<<20, nil)
		r.apply(1, 10)
		p := r.dial()
		p.register(0)
		p.snap(1)
		p.upToDate()
		began := time.Now()
		for range 20 {
			p.expect(zab.KindPing, 1)
			p.send(zab.KindPing, 1, nil)
		}
		if d := time.Since(began); d < 19*tick/2 || d > 21*tick/2 {
			t.Errorf("20 pings in %v", d)
		}
		last := time.Now()
		p.closed("was not heard for 10s")
		if d := time.Since(last); d < 5*tick || d > 6*tick {
			t.Errorf("silent for %v", d)
		}
	})
}

// TestRefused: a peer that is no observer, or wants more than to read, is rejected.
func TestRefused(t *testing.T) {
	t.Parallel()
	info := proto.AppendLong(proto.AppendInt(proto.AppendLong(nil, 9), zab.ProtocolVersion), 0)
	for _, c := range []struct {
		why string
		do  func(p *peer)
	}{
		{"only observers are served", func(p *peer) { p.send(zab.KindFollowerInfo, 0, info) }},
		{"version 0x7", func(p *peer) { p.send(zab.KindObserverInfo, 0, proto.AppendInt(proto.AppendLong(nil, 9), 7)) }},
		{"has answered LEADERINFO with PING", func(p *peer) {
			p.send(zab.KindObserverInfo, 0, info)
			p.expect(zab.KindLeaderInfo, 0)
			p.send(zab.KindPing, 0, nil)
		}},
		{"newer transactions than this server", func(p *peer) { p.register(2) }},
		{"has answered NEWLEADER with PING", func(p *peer) {
			p.register(1)
			p.expect(zab.KindDiff, 1)
			p.expect(zab.KindNewLeader, 0)
			p.send(zab.KindPing, 0, nil)
		}},
		{"can't write", func(p *peer) {
			p.register(1)
			p.expect(zab.KindDiff, 1)
			p.upToDate()
			p.send(zab.KindRequest, 0, proto.AppendInt(proto.AppendInt(proto.AppendLong(nil, 1), 2), int32(proto.OpCreate)))
		}},
		{"unexpected REVALIDATE", func(p *peer) {
			p.register(1)
			p.expect(zab.KindDiff, 1)
			p.upToDate()
			p.send(zab.KindRevalidate, 0, make([]byte, 12))
		}},
		{"longer than", func(p *peer) {
			head := proto.AppendInt(proto.AppendLong(proto.AppendInt(nil, int32(zab.KindObserverInfo)), 0), 1<<30)
			_, _ = p.Write(head)
		}},
		{"negative length", func(p *peer) {
			head := proto.AppendInt(proto.AppendLong(proto.AppendInt(nil, int32(zab.KindObserverInfo)), 0), -7)
			_, _ = p.Write(head)
		}},
		{"was not heard", func(*peer) {}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1<<20, nil)
				r.apply(1, 10)
				p := r.dial()
				c.do(p)
				p.closed(c.why)
			})
		})
	}
}

// TestSlow: the History is bounded. An observer that can't keep up is cut off, and gets the state
// again.
func TestSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10_000, nil)
		r.apply(1, 10)
		p := r.dial()
		p.register(0)
		p.snap(1)
		p.upToDate()
		r.apply(100, 1000)
		if r.history.bytes > 10_000 || len(r.history.entries) > 10 {
			t.Errorf("%d bytes, %d transactions", r.history.bytes, len(r.history.entries))
		}
		for {
			if _, err := zab.ReadPacket(p.r, 1<<20); err != nil {
				break
			}
		}
		p.closed("observerMaster.sizeLimit")
		p = r.dial()
		p.register(1)
		p.snap(101)
		p = r.dial()
		p.register(95)
		p.expect(zab.KindDiff, 101)
	})
}

// TestJump: after a restore nothing leads to the state, so every observer gets it again.
func TestJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1<<20, nil)
		r.apply(5, 10)
		p := r.dial()
		p.register(5)
		p.expect(zab.KindDiff, 5)
		p.upToDate()
		r.cfg.Tree.Lock()
		r.cfg.Tree.Advance(9)
		r.history.Jump(9)
		r.cfg.Tree.Unlock()
		p.closed("the state was replaced")
		p = r.dial()
		p.register(5)
		p.snap(9)
	})
}

// TestLags: an observer lags by the transactions that we haven't sent, and by the time since it
// confirmed a ping that came after everything.
func TestLags(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1<<20, nil)
		r.apply(3, 10)
		p := r.dial()
		p.register(0)
		p.snap(3)
		if list := r.m.Lags(); len(list) != 0 {
			t.Errorf("before it is up to date: %+v", list)
		}
		p.upToDate()
		synctest.Wait()
		lags := func(transactions int64, behind time.Duration) {
			t.Helper()
			synctest.Wait()
			if list := r.m.Lags(); len(list) != 1 || list[0] != (Lag{"9@pipe", transactions, behind}) {
				t.Errorf("%+v, want %d and %v", list, transactions, behind)
			}
		}
		lags(0, 0)
		p.expect(zab.KindPing, 3) // half a tick later
		p.send(zab.KindPing, 3, nil)
		lags(0, 0)
		r.apply(2, 10)
		lags(2, 0) // it doesn't read
		time.Sleep(tick)
		lags(2, tick)
		p.expect(zab.KindInform, 4)
		p.expect(zab.KindInform, 5)
		p.expect(zab.KindPing, 5)
		time.Sleep(tick / 4)
		lags(0, tick+tick/4)
		p.send(zab.KindPing, 5, nil)
		lags(0, tick/4)
		_ = p.Close()
		synctest.Wait()
		if list := r.m.Lags(); len(list) != 0 {
			t.Errorf("after it has left: %+v", list)
		}
	})
}

// TestTooMany: the connections are bounded, and a closed Master has none.
func TestTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1<<20, nil)
		for range maxObservers {
			r.dial()
		}
		r.dial().closed("too many observers")
		if err := r.m.Close(); err != nil || len(r.m.conns) > 0 {
			t.Errorf("%d connections: %v", len(r.m.conns), err)
		}
	})
}

// TestWithoutPassword: only a createSession that has a password changes.
func TestWithoutPassword(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 31, 48, 52, 64} {
		txn := make([]byte, n)
		for _, op := range []proto.Op{proto.OpCreateSession, proto.OpCreate} {
			if n >= 32 {
				copy(txn[28:], proto.AppendInt(nil, int32(op)))
			}
			want := n
			if op == proto.OpCreateSession && n >= 52 {
				want -= proto.PasswordSize
			}
			if got := zab.WithoutPassword(txn); len(got) != want {
				t.Errorf("%v of %d bytes: %d", op, n, len(got))
			}
		}
	}
}

// FuzzObserver: whatever a peer sends, it neither crashes the server nor makes it keep more than
// it has sent.
func FuzzObserver(f *testing.F) {
	packet := func(kind zab.Kind, data []byte) []byte {
		return zab.AppendPacket(nil, zab.Packet{Kind: kind, Data: data})
	}
	info := proto.AppendLong(proto.AppendInt(proto.AppendLong(nil, 9), zab.ProtocolVersion), 0)
	begin := append(packet(zab.KindObserverInfo, info), packet(zab.KindAckEpoch, append(proto.AppendInt(nil, 0), zab.Extension...))...)
	begin = append(begin, packet(zab.KindAck, nil)...)
	f.Add(begin, false)
	f.Add(append(begin, packet(zab.KindRequest, proto.AppendInt(proto.AppendInt(proto.AppendLong(nil, 1), 2), int32(proto.OpSync)))...), false)
	f.Add(append(zab.AppendToken(nil, zab.AuthInProgress, []byte{}), begin...), true)
	f.Fuzz(func(t *testing.T, sent []byte, login bool) {
		ours, theirs := net.Pipe()
		r := &rig{t: t, history: NewHistory(1 << 10)}
		r.cfg = Config{
			Tree: tree.New(), Sessions: session.NewTable(), History: r.history,
			WriteBody: func(io.Writer, *tree.Snapshot, *session.Table) error { return nil },
			Sync:      func(done func(error)) error { done(nil); return nil },
			Tick:      time.Second, InitLimit: 5, SyncLimit: 5, Logger: slog.New(slog.DiscardHandler),
		}
		if login {
			r.cfg.Users = sasl.Users{"u": "p"}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = newObserver(New(r.cfg, nil), theirs).run()
			_ = theirs.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		_, _ = ours.Write(sent)
		_ = ours.Close()
		<-ended
	})
}
