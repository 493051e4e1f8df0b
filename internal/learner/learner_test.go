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
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// recorder is a Receiver that records the calls.
type recorder struct {
	lines []string
	fail  error // of Commit
}

func (r *recorder) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Snapshot(s *zkfiles.State) error {
	r.add("snapshot %#x of %d", s.Zxid, s.Len())
	return nil
}

func (r *recorder) Commit(tx *zkfiles.Txn) error {
	r.add("%v %#x %v", tx.Type, tx.Zxid, tx.Paths())
	return r.fail
}

func (r *recorder) Synced() error { r.add("synced"); return nil }

func (r *recorder) Revalidated(session int64, valid bool) error {
	r.add("session %#x %v", session, valid)
	return nil
}

func (r *recorder) SyncDone(session int64, cxid int32) error {
	r.add("sync %#x %d", session, cxid)
	return nil
}

func (r *recorder) Ping(proposed int64, _ time.Time) error {
	r.add("ping %#x", proposed)
	return nil
}

// leader is the other end of a connection, in a test.
type leader struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (l *leader) send(packets ...zab.Packet) {
	var b []byte
	for _, p := range packets {
		b = zab.AppendPacket(b, p)
	}
	l.raw(b)
}

// raw sends bytes. The learner may have closed the connection because of the first ones.
func (l *leader) raw(b []byte) { _, _ = l.conn.Write(b) }

func (l *leader) expect(want zab.Packet) {
	l.t.Helper()
	got, err := zab.ReadPacket(l.r, 1<<20)
	if err != nil || got.Kind != want.Kind || got.Zxid != want.Zxid || !bytes.Equal(got.Data, want.Data) {
		l.t.Errorf("the learner sent %v %#x %x (%v), want %v %#x %x", got.Kind, got.Zxid, got.Data, err, want.Kind, want.Zxid, want.Data)
	}
}

// accept answers the registration of learner 200 that has everything up to zxid.
func (l *leader) accept(epoch, zxid int64, current int32) {
	l.t.Helper()
	info := proto.AppendLong(proto.AppendInt(proto.AppendLong(nil, 200), 0x10000), 0)
	l.expect(zab.Packet{Kind: zab.KindObserverInfo, Zxid: zab.EpochOf(zxid) << 32, Data: info})
	l.send(zab.Packet{Kind: zab.KindLeaderInfo, Zxid: epoch << 32, Data: proto.AppendInt(nil, 0x10000)})
	l.expect(zab.Packet{Kind: zab.KindAckEpoch, Zxid: zxid, Data: proto.AppendInt(nil, current)})
}

// follow runs a learner with a leader that play plays, and returns the learner's record and error.
func follow(t *testing.T, zxid int64, play func(*leader)) (*recorder, error) {
	t.Helper()
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		play(&leader{t, there, bufio.NewReader(there)})
		_ = there.Close()
	}()
	defer func() { <-done }()
	cfg := Config{Addrs: []string{"zk1:2888"}, ID: 200, Limits: zkfiles.Limits{MaxField: 1 << 20}, Dial: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
	c, err := Dial(t.Context(), cfg, zxid)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	r := new(recorder)
	return r, c.Follow(zxid, r)
}

// createTxn returns a create of ZooKeeper 3.6 and later, with its digest.
func createTxn(zxid int64, path string) []byte {
	b := proto.AppendLong(nil, 0x100)
	b = proto.AppendInt(b, 7)
	b = proto.AppendLong(b, zxid)
	b = proto.AppendLong(b, 1_000_000)
	b = proto.AppendInt(b, int32(proto.OpCreate))
	b = proto.AppendString(b, path)
	b = proto.AppendBuffer(b, []byte("data"))
	b = proto.AppendACLs(b, proto.OpenACL())
	b = proto.AppendBool(b, false)
	b = proto.AppendInt(b, 1)
	return proto.AppendLong(proto.AppendInt(b, 2), 99)
}

// snapshot returns the body of an empty state, as it follows SNAP.
func snapshot(signature string) []byte {
	b := proto.AppendInt(nil, 1)
	b = proto.AppendLong(b, 0x100)
	b = proto.AppendInt(b, 30_000)
	b = proto.AppendInt(b, 0)      // ACLs
	b = proto.AppendString(b, "")  // the root
	b = proto.AppendBuffer(b, nil) //
	b = proto.AppendLong(b, -1)    // the open ACL
	b = append(b, make([]byte, 8*4+4*3+8+8)...)
	b = proto.AppendString(b, "/")
	return proto.AppendString(b, signature)
}

func TestSnapshotThenTransactions(t *testing.T) {
	t.Parallel()
	r, err := follow(t, 0, func(l *leader) {
		l.accept(2, 0, 0)
		l.send(zab.Packet{Kind: zab.KindSnap, Zxid: 0x200000002})
		l.raw(snapshot("BenWasHere"))
		l.send(zab.Packet{Kind: zab.KindProposal, Zxid: 0, Data: createTxn(0x200000002, "/in the snapshot")}, zab.Packet{Kind: zab.KindCommit, Zxid: 0x200000002},
			zab.Packet{Kind: zab.KindProposal, Zxid: 0, Data: createTxn(0x200000003, "/a")}, zab.Packet{Kind: zab.KindCommit, Zxid: 0x200000003},
			zab.Packet{Kind: zab.KindNewLeader, Zxid: 0x200000000, Data: []byte("version=0")})
		l.expect(zab.Packet{Kind: zab.KindAck, Zxid: 0x200000000})
		l.send(zab.Packet{Kind: zab.KindInform, Data: createTxn(0x200000004, "/b")}, zab.Packet{Kind: zab.KindUpToDate, Zxid: -1})
		l.expect(zab.Packet{Kind: zab.KindAck, Zxid: 0x200000000})
		l.send(zab.Packet{Kind: zab.KindPing, Zxid: 0x200000005})
		l.expect(zab.Packet{Kind: zab.KindPing, Zxid: 0x200000005, Data: []byte{}})
		l.send(zab.Packet{Kind: zab.KindInform, Data: createTxn(0x200000005, "/c")}, zab.Packet{Kind: zab.KindInformAndActivate, Zxid: 0, Data: append(make([]byte, 8), createTxn(0x200000006, "/d")...)})
	})
	want := []string{"snapshot 0x200000002 of 1", "create 0x200000003 [/a]", "create 0x200000004 [/b]", "synced", "ping 0x200000005", "create 0x200000005 [/c]", "create 0x200000006 [/d]"}
	if r == nil || !slices.Equal(r.lines, want) {
		t.Errorf("received %+v, want %q", r, want)
	}
	if err == nil || !strings.Contains(err.Error(), "zk1:2888: the leader closed the connection") {
		t.Error(err)
	}
}

func TestResumesWithDiff(t *testing.T) {
	t.Parallel()
	r, err := follow(t, 0x100000007, func(l *leader) {
		l.accept(2, 0x100000007, 1)
		l.send(zab.Packet{Kind: zab.KindDiff, Zxid: 0x200000001}, zab.Packet{Kind: zab.KindProposal, Zxid: 0, Data: createTxn(0x200000001, "/a")}, zab.Packet{Kind: zab.KindCommitAndActivate, Zxid: 0x200000001, Data: make([]byte, 8)},
			zab.Packet{Kind: zab.KindNewLeader, Zxid: 0x200000000})
		l.expect(zab.Packet{Kind: zab.KindAck, Zxid: 0x200000000})
		l.send(zab.Packet{Kind: zab.KindUpToDate})
		l.expect(zab.Packet{Kind: zab.KindAck, Zxid: 0x200000000})
	})
	if want := []string{"create 0x200000001 [/a]", "synced"}; r == nil || !slices.Equal(r.lines, want) {
		t.Errorf("received %+v (%v), want %q", r, err, want)
	}
}

// TestRefusesALeader lists packets that a leader must not send.
func TestRefusesALeader(t *testing.T) {
	t.Parallel()
	diff := zab.Packet{Kind: zab.KindDiff, Zxid: 0x100000007}
	create := func(zxid int64) zab.Packet { return zab.Packet{Kind: zab.KindInform, Data: createTxn(zxid, "/a")} }
	huge := proto.AppendInt(proto.AppendLong(proto.AppendInt(nil, int32(zab.KindInform)), 0), 1<<30)
	for _, c := range []struct {
		name, want string
		play       func(*leader)
	}{
		{"TRUNC", "has lost committed transactions", func(l *leader) { l.send(zab.Packet{Kind: zab.KindTrunc, Zxid: 0x100000005}) }},
		{"DIFF to before", "has lost committed transactions", func(l *leader) { l.send(zab.Packet{Kind: zab.KindDiff, Zxid: 0x100000005}) }},
		{"no beginning", "began with UPTODATE", func(l *leader) { l.send(zab.Packet{Kind: zab.KindUpToDate}) }},
		{"old transaction", "0x100000007 comes after 0x100000007", func(l *leader) { l.send(diff, create(0x100000007)) }},
		{"future epoch", "later epoch than the leader's", func(l *leader) { l.send(diff, create(0x200000001)) }},
		{"COMMIT alone", "not the next proposal", func(l *leader) { l.send(diff, zab.Packet{Kind: zab.KindCommit, Zxid: 0x100000008}) }},
		{"UPTODATE too early", "1 transactions without COMMIT", func(l *leader) {
			l.send(diff, zab.Packet{Kind: zab.KindProposal, Zxid: 0, Data: createTxn(0x100000008, "/a")}, zab.Packet{Kind: zab.KindUpToDate})
		}},
		{"unknown", "unexpected packet type 77", func(l *leader) { l.send(diff, zab.Packet{Kind: 77}) }},
		{"no transaction", "header", func(l *leader) { l.send(diff, zab.Packet{Kind: zab.KindInform, Data: []byte{1}}) }},
		{"huge", "longer than jute.maxbuffer", func(l *leader) { l.send(diff); l.raw(huge) }},
		{"negative length", "negative length", func(l *leader) { l.send(diff); l.raw(append(huge[:12:12], 0x80, 0, 0, 0)) }},
		{"identities", "the identities of INFORM", func(l *leader) {
			l.send(diff)
			l.raw(append(append(huge[:12:12], 0, 0, 0, 0), 0x7f, 0, 0, 0))
		}},
		{"cut", "unexpected EOF", func(l *leader) { l.send(diff); l.raw(huge[:9]) }},
		{"signature", "signature is \"BenWasGone\"", func(l *leader) { l.send(zab.Packet{Kind: zab.KindSnap}); l.raw(snapshot("BenWasGone")) }},
		{"snapshot without a root", "the root is missing", func(l *leader) {
			l.send(zab.Packet{Kind: zab.KindSnap})
			l.raw(proto.AppendString(make([]byte, 8), "/"))
		}},
		{"hostile snapshot", "jute.maxbuffer", func(l *leader) {
			l.send(zab.Packet{Kind: zab.KindSnap})
			l.raw(append(make([]byte, 8), 0x7f, 0xff, 0xff, 0xff))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := follow(t, 0x100000007, func(l *leader) {
				l.accept(1, 0x100000007, -1)
				c.play(l)
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestRefusesARegistration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want   string
		answer []byte
	}{
		{"sslQuorum", nil},
		{"answered NEWLEADER instead of LEADERINFO", zab.AppendPacket(nil, zab.Packet{Kind: zab.KindNewLeader})},
		{"version 0x20000", zab.AppendPacket(nil, zab.Packet{Kind: zab.KindLeaderInfo, Zxid: 1 << 32, Data: proto.AppendInt(nil, 0x20000)})},
		{"the leader's epoch 1 is older", zab.AppendPacket(nil, zab.Packet{Kind: zab.KindLeaderInfo, Zxid: 1 << 32, Data: proto.AppendInt(nil, 0x10000)})},
	} {
		_, err := follow(t, 0x200000001, func(l *leader) {
			_, _ = zab.ReadPacket(l.r, 1<<10)
			l.raw(c.answer)
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A leader that stops sending is given up, first after SyncTimeout, then after SilenceTimeout.
func TestSilentLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := follow(t, 0, func(l *leader) { l.accept(1, 0, 0); _, _ = l.r.ReadByte() })
		if took := time.Since(begin); err == nil || took != 30*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		begin = time.Now()
		r, err := follow(t, 0, func(l *leader) {
			l.accept(1, 0, 0)
			l.send(zab.Packet{Kind: zab.KindDiff}, zab.Packet{Kind: zab.KindUpToDate})
			l.expect(zab.Packet{Kind: zab.KindAck, Zxid: 1 << 32})
			_, _ = l.r.ReadByte()
		})
		if took := time.Since(begin); err == nil || took != 10*time.Second || !slices.Equal(r.lines, []string{"synced"}) {
			t.Errorf("%v after %v: %q", err, took, r.lines)
		}
	})
}

// Dial uses the server that leads, even if other servers hang, refuse or have no quorum.
func TestFindsTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
			here, there := net.Pipe()
			switch addr {
			case "down:1":
				return nil, errors.New("connection refused")
			case "hangs:1":
				<-ctx.Done()
				return nil, ctx.Err()
			case "mute:1":
				go func() { _, _ = io.Copy(io.Discard, there) }()
			case "leads:1":
				go (&leader{t, there, bufio.NewReader(there)}).accept(1, 0, 0)
			}
			return here, nil
		}
		c := must.Get(Dial(t.Context(), Config{Addrs: []string{"down:1", "hangs:1", "mute:1", "leads:1"}, ID: 200, Dial: dial}, 0))(t)
		if c.Addr() != "leads:1" || c.Epoch() != 1 {
			t.Error(c.Addr(), c.Epoch())
		}
		must.Do(t, c.Close())
		_, err := Dial(t.Context(), Config{Addrs: []string{"down:1", "hangs:1", "mute:1"}, ID: 200, Dial: dial}, 0)
		if !errors.Is(err, ErrNoLeader) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "mute:1: no byte for 30s") {
			t.Error(err)
		}
	})
}

// While a server that is stopped keeps Dial waiting, another one becomes the leader.
func TestFindsANewLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		elected := time.Now().Add(6 * time.Second)
		dial := func(_ context.Context, _, addr string) (net.Conn, error) {
			here, there := net.Pipe()
			switch {
			case addr == "frozen:1":
				go func() { _, _ = io.Copy(io.Discard, there) }()
			case time.Now().Before(elected):
				return nil, errors.New("connection refused")
			default:
				go (&leader{t, there, bufio.NewReader(there)}).accept(2, 0, 0)
			}
			return here, nil
		}
		c := must.Get(Dial(t.Context(), Config{Addrs: []string{"frozen:1", "elected:1"}, ID: 200, Dial: dial}, 0))(t)
		if late := time.Since(elected); c.Addr() != "elected:1" || late > again {
			t.Error(c.Addr(), late)
		}
		must.Do(t, c.Close())
	})
}

// FuzzFollow feeds a learner whatever a leader could send. It must end with an error and with
// bounded memory.
func FuzzFollow(f *testing.F) {
	begin := zab.AppendPacket(nil, zab.Packet{Kind: zab.KindSnap, Zxid: 5})
	f.Add(append(begin, snapshot("BenWasHere")...))
	f.Add(zab.AppendPacket(zab.AppendPacket(nil, zab.Packet{Kind: zab.KindDiff}), zab.Packet{Kind: zab.KindInform, Data: createTxn(1<<32+1, "/a")}))
	f.Add(zab.AppendPacket(zab.AppendPacket(nil, zab.Packet{Kind: zab.KindDiff}), zab.Packet{Kind: zab.KindProposal, Data: createTxn(1<<32+1, "/a")}))
	synced := zab.AppendPacket(zab.AppendPacket(zab.AppendPacket(nil, zab.Packet{Kind: zab.KindDiff}), zab.Packet{Kind: zab.KindNewLeader, Data: []byte("version=0")}), zab.Packet{Kind: zab.KindUpToDate})
	f.Add(zab.AppendPacket(zab.AppendPacket(synced, zab.Packet{Kind: zab.KindSync}), zab.Packet{Kind: zab.KindRevalidate, Data: validity(7, 1)}))
	f.Add(zab.AppendPacket(zab.AppendPacket(synced, zab.Packet{Kind: zab.KindPing, Zxid: 9}), zab.Packet{Kind: zab.KindRevalidate, Data: validity(7, 1)[:8]}))
	f.Add(append(begin, append(snapshot("BenWasHere"), zab.AppendPacket(nil, zab.Packet{Kind: zab.KindPasswords, Data: make([]byte, zab.PasswordSize)})...)...))
	f.Fuzz(func(t *testing.T, stream []byte) {
		c := &Conn{zkgo: len(stream)%2 == 1, cfg: Config{Limits: zkfiles.Limits{MaxField: 1 << 16}}.withDefaults(), conn: discard{}, epoch: 1, timeout: time.Second}
		c.r = bufio.NewReader(bytes.NewReader(stream))
		c.cfg.Touched = func(to []Touch) []Touch { return append(to, Touch{7, 30_000}) }
		c.asked.syncs, c.asked.sessions = []syncRequest{{7, 1}}, []int64{7}
		if err := c.Follow(0, new(recorder)); err == nil {
			t.Error("a stream that ends is no error")
		}
	})
}

// discard is a connection to which everything can be written.
type discard struct{ net.Conn }

func (discard) Close() error                     { return nil }
func (discard) Write(b []byte) (int, error)      { return len(b), nil }
func (discard) SetWriteDeadline(time.Time) error { return nil }

// TestPasswords: after the snapshot of a zkgo server come the passwords of its sessions, and of
// no others.
func TestPasswords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		packet zab.Packet
		want   string
	}{
		{zab.Packet{Kind: zab.KindPasswords}, "the leader closed the connection"},
		{zab.Packet{Kind: zab.KindPasswords, Data: make([]byte, 23)}, "PASSWORDS with 23 bytes instead of the passwords"},
		{zab.Packet{Kind: zab.KindPing}, "PING with 0 bytes instead of the passwords"},
		{zab.Packet{Kind: zab.KindPasswords, Data: proto.AppendLong(make([]byte, 0, 24), 0x999)[:24]}, "which the snapshot does not have"},
	} {
		_, err := follow(t, 0, func(l *leader) {
			info := proto.AppendLong(proto.AppendInt(proto.AppendLong(nil, 200), 0x10000), 0)
			l.expect(zab.Packet{Kind: zab.KindObserverInfo, Data: info})
			l.send(zab.Packet{Kind: zab.KindLeaderInfo, Zxid: 1 << 32, Data: append(proto.AppendInt(nil, 0x10000), zab.Extension...)})
			l.expect(zab.Packet{Kind: zab.KindAckEpoch, Data: append(proto.AppendInt(nil, 0), zab.Extension...)})
			l.send(zab.Packet{Kind: zab.KindSnap, Zxid: 5})
			l.raw(snapshot("BenWasHere"))
			l.send(c.packet)
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.packet.Kind, err, c.want)
		}
	}
}
