package raftfsm

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// TestFirstSteps follows a new server: zxids count from 1, failures use up one, and
// re-attaching and sync use up none.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, cfg Config) {
		r := start(t, cfg)
		if s := r.Status(); s.Role != Standalone || !s.Serving || s.Leader != 1 || s.Epoch != 0 {
			t.Fatalf("status %+v", s)
		}
		if z := r.zxid(); z != 0 {
			t.Fatalf("a fresh server is at zxid %#x", z)
		}
		s := r.attach(10 * time.Second)
		steps := []struct {
			name string
			cmd  command.Command
			want outcome
		}{
			{"create", create(s, "/a", 0), outcome{zxid: 2}},
			{"create again", create(s, "/a", 0), outcome{zxid: 3, code: proto.ErrNodeExists}},
			{"sync", command.Command{Kind: command.KindSync, Session: s.ID, Gen: s.Gen}, outcome{}},
			{"attach", command.Command{Kind: command.KindAttach, Session: s.ID, Password: s.Password, Timeout: 9000}, outcome{}},
			{"stale", set(s, "/a", nil), outcome{code: proto.ErrSessionMoved}},
			{"wrong password", command.Command{Kind: command.KindAttach, Session: s.ID}, outcome{code: proto.ErrSessionExpired}},
			{"unknown session", command.Command{Kind: command.KindAttach, Session: 77}, outcome{code: proto.ErrSessionExpired}},
			{"write of unknown session", command.Command{Kind: command.KindRequest, Session: 77, Op: proto.OpDelete, Body: (&proto.DeleteRequest{Path: "/a", Version: -1}).Append(nil)}, outcome{zxid: 4, code: proto.ErrSessionExpired}},
		}
		for _, st := range steps {
			got := r.do(st.cmd)
			if got.zxid != st.want.zxid || got.code != st.want.code {
				t.Fatalf("%s: zxid %#x, %v; want %#x, %v", st.name, got.zxid, got.code, st.want.zxid, st.want.code)
			}
		}
		s.Gen++
		if got := r.do(set(s, "/a", []byte("x"))); got.zxid != 5 || got.code != proto.Ok || got.stat.Version != 1 {
			t.Fatalf("after attaching again: %+v", got)
		}
		if got := r.do(write(s, proto.OpCloseSession, nil)); got.zxid != 6 || got.code != proto.Ok {
			t.Fatalf("closeSession: %+v", got)
		}
		r.close()
	})
}

// TestOrder lets several goroutines propose with many commands in flight. Each
// goroutine's commands are executed in order, exactly once, and the zxids have no gaps.
func TestOrder(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, cfg Config) {
		r := start(t, cfg)
		s := r.attach(time.Minute)
		const callers, each = 8, 600
		chans := make([][]chan outcome, callers)
		done := make(chan error, callers)
		for i := range callers {
			chans[i] = make([]chan outcome, each)
			r.get(r.send(create(s, fmt.Sprintf("/%d-", i), 0)))
			go func() {
				for k := range each {
					chans[i][k] = make(chan outcome, 1)
					c := create(s, fmt.Sprintf("/%d-/n", i), flagSequential)
					c.Waiter = waiter(chans[i][k])
					if err := r.Propose(&c); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range callers {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		seen := map[int64]bool{}
		for i := range callers {
			for k := range each {
				o := r.get(chans[i][k])
				if want := fmt.Sprintf("/%d-/n%010d", i, k); o.path != want || seen[o.zxid] {
					t.Fatalf("%+v, want %s under a zxid of its own", o, want)
				}
				seen[o.zxid] = true
			}
		}
		if z := r.zxid(); z != 1+callers+callers*each {
			t.Fatalf("zxid %d after %d transactions", z, 1+callers+callers*each)
		}
	})
}

// TestRestart closes a server and starts it again on the same directories.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, snapshot := range []bool{false, true} {
		eachDisk(t, fmt.Sprintf("snapshot=%v", snapshot), func(t *testing.T, cfg Config) {
			r := start(t, cfg)
			s := r.attach(time.Minute)
			r.do(create(s, "/a", 0))
			r.do(create(s, "/a/e", flagEphemeral))
			if snapshot {
				if err := r.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 300 {
				r.send(set(s, "/a", fmt.Append(nil, i)))
			}
			last := r.do(create(s, "/a/last", 0))
			before := r.dump()
			r.close()

			r = start(t, cfg)
			if after := r.dump(); after != before || r.zxid() != last.zxid {
				t.Fatalf("zxid %d, was %d; state\n%s\nwas\n%s", r.zxid(), last.zxid, after, before)
			}
			if !r.exists("/a/e") {
				t.Fatal("the ephemeral znode is gone")
			}
			if r.applied != nil && r.applied[0].waited {
				t.Fatal("an entry of the past found a waiter")
			}
			if o := r.do(set(s, "/a", nil)); o.code != proto.Ok || o.zxid != last.zxid+1 {
				t.Fatalf("first write after the restart: %+v", o)
			}
			if s2 := r.attach(time.Minute); s2.ID == s.ID {
				t.Fatal("a session id was given twice")
			}
			r.close()
		})
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, cfg Config) {
		r := start(t, cfg)
		s := r.attach(time.Minute)
		var chans []chan outcome
		for range 1000 {
			chans = append(chans, r.send(create(s, "/n", flagSequential)))
		}
		r.close()
		for _, ch := range chans { // all commands proposed before were executed
			select {
			case <-ch:
			default:
				t.Fatal("a command was dropped by Close")
			}
		}
		if err := r.Propose(&command.Command{Kind: command.KindSync}); !errors.Is(err, ErrClosed) {
			t.Fatalf("Propose after Close: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatalf("second Close: %v", err)
		}
	})
}

// TestCloseAtOnce closes a server right after it has started.
func TestCloseAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		cfg := memoryConfig()
		cfg.Handler = newRecorder()
		n, err := startNode(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProposeRefuses(t *testing.T) {
	t.Parallel()
	r := start(t, memoryConfig())
	for _, c := range []command.Command{
		{Kind: command.KindRequest, Op: proto.OpGetData},
		{Kind: command.KindRequest, Op: proto.OpDeleteContainer},
		{Kind: command.KindExpire}, {Kind: command.KindReap}, {}, {Kind: 99},
	} {
		if err := r.Propose(&c); err == nil {
			t.Errorf("%v %v was taken", c.Kind, c.Op)
		}
	}
}
