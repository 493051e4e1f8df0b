package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a server with a log that the test controls: nothing is applied before the
// test says so.
type server struct {
	t *testing.T
	*Restores
	machine  *apply.Machine
	stopping chan struct{}
	entries  uint64
	seq      uint64
	sent     []command.Kind // the kinds of the commands removed from the queue so far
}

// newServer returns a server that leads, with a znode and a session.
func newServer(t *testing.T) *server {
	s := &server{t: t, stopping: make(chan struct{})}
	env := apply.Detached()
	s.Restores = &Restores{
		Local: env.Local, Wall: time.Now, Stopping: s.stopping,
		Level: func() uint32 { now, _ := s.machine.Levels(); return now }, Lacking: func(uint32) []string { return nil },
	}
	env.Settled = s.Settled
	s.machine = apply.New(env, 1<<30, 1<<60)
	s.begin(1)
	s.propose(command.Command{Kind: command.KindAttach, Timeout: 4000})
	s.deliverAll()
	s.propose(command.Command{Kind: command.KindRequest, Session: 1, Gen: 1, Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/before", ACL: proto.OpenACL()}).Append(nil)})
	s.deliverAll()
	if !s.has("/before") || s.sessions() != 1 {
		t.Fatal("the server has not begun with a znode and a session")
	}
	return s
}

func (s *server) apply(entry []byte) {
	s.t.Helper()
	s.entries++
	if err := s.machine.ApplyEntry(s.entries, entry); err != nil {
		s.t.Fatal(err)
	}
}

// begin applies the beginning of a leadership.
func (s *server) begin(incarnation uint64) {
	s.t.Helper()
	s.seq = 0
	start := command.LeaderStart{Server: 1, Incarnation: incarnation, Level: command.Level, Cluster: command.ClusterID{1}}
	s.apply(start.Append(nil))
}

func (s *server) propose(c command.Command) {
	s.t.Helper()
	if err := s.Local.Propose(&c, false); err != nil {
		s.t.Fatal(err)
	}
}

// take removes and returns the oldest run in the queue, nil if there is none. It is lost
// unless the test passes it to deliver.
func (s *server) take() []byte {
	s.t.Helper()
	b, _ := s.Local.Take(nil, 0)
	if len(b) == 0 {
		return nil
	}
	var h command.RunHeader
	body, _, err := h.Decode(b)
	if err != nil {
		s.t.Fatal(err)
	}
	for range h.Count {
		var c command.Command
		if body, err = c.Decode(body); err != nil {
			s.t.Fatal(err)
		}
		s.sent = append(s.sent, c.Kind)
	}
	return b
}

// deliver applies a run.
func (s *server) deliver(run []byte) {
	s.t.Helper()
	s.seq++
	h := command.BatchHeader{Incarnation: s.machine.Incarnation, Seq: s.seq, Time: time.Now().UnixMilli()}
	s.apply(append(h.Append(nil), run...))
}

// deliverAll applies everything that is proposed, until nothing more comes.
func (s *server) deliverAll() {
	s.t.Helper()
	for {
		synctest.Wait()
		run := s.take()
		if run == nil {
			return
		}
		s.deliver(run)
	}
}

// queued removes the proposed commands from the queue, and returns their kinds.
func (s *server) queued() (runs [][]byte, kinds []command.Kind) {
	s.t.Helper()
	synctest.Wait()
	before := len(s.sent)
	for run := s.take(); run != nil; run = s.take() {
		runs = append(runs, run)
	}
	return runs, s.sent[before:]
}

func (s *server) has(path string) bool {
	s.machine.Tree.RLock()
	defer s.machine.Tree.RUnlock()
	return s.machine.Tree.Get(path) != nil
}

func (s *server) sessions() int {
	s.machine.Tree.RLock()
	defer s.machine.Tree.RUnlock()
	return s.machine.Sessions.Len()
}

// unchanged checks that the state is the one before the restore, and that nothing of a new one
// is kept.
func (s *server) unchanged() {
	s.t.Helper()
	if !s.has("/before") || s.has("/r") || s.sessions() != 1 {
		s.t.Error("the state was changed")
	}
	if s.machine.Arriving != nil {
		s.t.Error("pieces of the new state are kept")
	}
}

// start replaces the state in the background.
func (s *server) start(ctx context.Context, t *tree.Tree, table *session.Table) <-chan apply.Restored {
	done := make(chan apply.Restored, 1)
	go func() {
		zxid, err := s.Replace(ctx, t, table)
		done <- apply.Restored{Zxid: zxid, Err: err}
	}()
	return done
}

// outcome returns how a restore has ended, and fails the test if it has not.
func (s *server) outcome(done <-chan apply.Restored) apply.Restored {
	s.t.Helper()
	synctest.Wait()
	select {
	case o := <-done:
		return o
	default:
		s.t.Fatal("the restore goes on")
		return apply.Restored{}
	}
}

// inTime runs f in fake time with a server.
func inTime(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newServer(t)) })
}

// many is the number of large znodes in a state of many. Two znodes fit into a piece.
const many = 40

// stateOf returns a state with /r, its n large children, an ephemeral znode and the session
// that owns it.
func stateOf(t *testing.T, n int) (*tree.Tree, *session.Table) {
	t.Helper()
	tr, table := tree.New(), session.NewTable()
	s := table.Create(5, 4000, [16]byte{})
	tx := tree.Txn{Zxid: 7 << 32, Time: 5, Session: s.ID}
	add := func(path string, data []byte, flags int32) {
		tx.Zxid++
		if r := tr.Apply(&tx, proto.OpCreate, &proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL(), Flags: flags}); r.Code != proto.Ok {
			t.Fatalf("%s: %v", path, r.Code)
		}
	}
	add("/r", nil, 0)
	for i := range n {
		add(fmt.Sprintf("/r/%d", i), bytes.Repeat([]byte("x"), pieceSize/2), 0)
	}
	const ephemeral = 1
	add("/r/e", nil, ephemeral)
	return tr, table
}

// The new state replaces the old one with all its sessions, in the epoch after both.
func TestReplace(t *testing.T) {
	for name, n := range map[string]int{"one piece": 0, "many pieces": many} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, s *server) {
				tr, table := stateOf(t, n)
				done := s.start(t.Context(), tr, table)
				s.deliverAll()
				o := s.outcome(done)
				if o.Err != nil || o.Zxid != 8<<32 || s.machine.Tree.LastZxid() != o.Zxid {
					t.Fatalf("%+v, and the tree is at %#x", o, s.machine.Tree.LastZxid())
				}
				if s.has("/before") || !s.has("/r") || s.has("/r/e") || s.sessions() != 0 {
					t.Error("the state is not the new one without its sessions")
				}
				if n > 0 && !s.has(fmt.Sprintf("/r/%d", n-1)) {
					t.Error("the last znode is missing")
				}
				pieces := 0
				for _, k := range s.sent {
					if k == command.KindRestoreChunk {
						pieces++
					}
				}
				if pieces < 1+n/2 {
					t.Errorf("%d pieces for %d znodes of half a piece", pieces, n)
				}
			})
		})
	}
}

// The ids of new sessions start above the ids in both states, and at least at the number
// from which a new server would start.
func TestSessionIDs(t *testing.T) {
	const high = 1<<56 - 1<<40 // above any clock
	for name, counter := range map[string]uint64{"high": high, "low": 1} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, s *server) {
				tr, table := tree.New(), session.NewTable()
				table.Put(session.Session{ID: 5<<56 | int64(counter), Timeout: 4000, Gen: 1})
				done := s.start(t.Context(), tr, table)
				s.deliverAll()
				if o := s.outcome(done); o.Err != nil {
					t.Fatal(o.Err)
				}
				next := session.Counter(s.machine.Sessions.Create(1, 4000, [16]byte{}).ID)
				if least := max(counter, session.Counter(time.Now().Add(-time.Minute).UnixMilli()<<16)); next <= least {
					t.Errorf("counter %#x, want more than %#x", next, least)
				}
			})
		})
	}
}

// At most piecesAhead pieces are in flight, so the write of a client has no more before it.
func TestPiecesInFlight(t *testing.T) {
	inTime(t, func(t *testing.T, s *server) {
		tr, table := stateOf(t, many)
		done := s.start(t.Context(), tr, table)
		begin, kinds := s.queued()
		if len(kinds) != 1 || kinds[0] != command.KindRestoreBegin {
			t.Fatalf("before there is a leader, %v is proposed", kinds)
		}
		s.deliver(begin[0])
		runs, kinds := s.queued()
		if len(kinds) != piecesAhead {
			t.Errorf("%d commands are in flight, want %d pieces", len(kinds), piecesAhead)
		}
		for len(runs) > 0 {
			s.deliver(runs[0])
			more, kinds := s.queued()
			if runs = append(runs[1:], more...); len(kinds) > piecesAhead {
				t.Fatalf("%v came at once", kinds)
			}
		}
		if o := s.outcome(done); o.Err != nil {
			t.Fatal(o.Err)
		}
	})
}

// A server runs one restore at a time.
func TestOneRestoreAtATime(t *testing.T) {
	inTime(t, func(t *testing.T, s *server) {
		tr, table := stateOf(t, 0)
		done := s.start(t.Context(), tr, table)
		synctest.Wait()
		tr, table = stateOf(t, 0)
		if _, err := s.Replace(t.Context(), tr, table); !errors.Is(err, ErrBusy) {
			t.Errorf("a second restore: %v", err)
		}
		s.deliverAll()
		if o := s.outcome(done); o.Err != nil {
			t.Error(o.Err)
		}
		done = s.start(t.Context(), tr, table)
		s.deliverAll()
		if o := s.outcome(done); o.Err != nil {
			t.Errorf("the next one: %v", o.Err)
		}
	})
}

// A restore is refused, with the reason, while not every server supports restores.
func TestLevel(t *testing.T) {
	inTime(t, func(t *testing.T, s *server) {
		s.Level = func() uint32 { return apply.RestoreLevel - 1 }
		s.Lacking = func(level uint32) []string {
			return []string{fmt.Sprintf("server 2 does not know level %d", level), "server 3"}
		}
		tr, table := stateOf(t, 0)
		_, err := s.Replace(t.Context(), tr, table)
		if want := fmt.Sprintf("server 2 does not know level %d, server 3", apply.RestoreLevel); !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		s.Lacking = func(uint32) []string { return nil }
		if err := s.Check(); !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), "try again") {
			t.Errorf("the leader is about to raise the level: %v", err)
		}
		if _, kinds := s.queued(); len(kinds) > 0 {
			t.Errorf("%v was proposed", kinds)
		}
		s.Level = func() uint32 { return apply.RestoreLevel }
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	})
}

// Until the restore has begun, its end changes nothing, and each cause has its own error.
func TestEndBeforeTheBeginning(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *server, cancel func())
		want error
		took time.Duration
	}{
		{"no leader", func(*server, func()) { time.Sleep(BeginLimit) }, ErrNoLeader, BeginLimit},
		{"lost", func(s *server, _ func()) { s.Local.Lose() }, ErrLost, 0},
		{"canceled", func(_ *server, cancel func()) { cancel() }, context.Canceled, 0},
		{"stopping", func(s *server, _ func()) { close(s.stopping) }, propose.ErrClosed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, s *server) {
				ctx, cancel := context.WithCancel(t.Context())
				tr, table := stateOf(t, many)
				began := time.Now()
				done := s.start(ctx, tr, table)
				_, _ = s.queued() // lost on the way
				c.end(s, cancel)
				if o := s.outcome(done); !errors.Is(o.Err, c.want) || !strings.Contains(o.Err.Error(), "nothing was changed") {
					t.Errorf("%v, want %v", o.Err, c.want)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				s.deliverAll()
				s.unchanged()
			})
		})
	}
}

// If the restore ends while its pieces are in flight, nothing is changed, and the servers give
// up the pieces that they have.
func TestEndBetweenThePieces(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *server, cancel func())
		want string
	}{
		{"lost", func(s *server, _ func()) { s.Local.Lose() }, ErrLost.Error()},
		{"canceled", func(_ *server, cancel func()) { cancel() }, "nothing was changed: context canceled"},
		{"another leadership", func(s *server, _ func()) { s.begin(2) }, "another leadership has begun: nothing was changed"},
		{"another restore", func(s *server, _ func()) {
			s.propose(command.Command{Kind: command.KindRestoreBegin, Body: make([]byte, 8)})
			s.deliverAll()
			s.propose(command.Command{Kind: command.KindRestoreAbort, Body: make([]byte, 8)})
		}, "another restore has begun"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, s *server) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tr, table := stateOf(t, many)
				done := s.start(ctx, tr, table)
				begin, _ := s.queued()
				s.deliver(begin[0])
				runs, _ := s.queued()
				s.deliver(runs[0])
				if s.machine.Arriving == nil {
					t.Fatal("nothing has arrived")
				}
				_, _ = s.queued() // lost on the way
				c.end(s, cancel)
				s.deliverAll()
				if o := s.outcome(done); o.Zxid != 0 || o.Err == nil || !strings.Contains(o.Err.Error(), c.want) {
					t.Errorf("%+v, want %q", o, c.want)
				}
				s.unchanged()
			})
		})
	}
}

// toTheCommit runs a restore until its commit is proposed, and returns the run with the
// commit.
func (s *server) toTheCommit() (done <-chan apply.Restored, commit []byte) {
	s.t.Helper()
	tr, table := stateOf(s.t, 0)
	done = s.start(s.t.Context(), tr, table)
	begin, _ := s.queued()
	s.deliver(begin[0])
	runs, kinds := s.queued()
	if len(runs) != 1 || kinds[len(kinds)-1] != command.KindRestoreCommit {
		s.t.Fatalf("%d runs with %v", len(runs), kinds)
	}
	return done, runs[0]
}

// Once the commit is in flight, the log determines the outcome, although this server has
// lost its connection to the leader.
func TestLostAfterTheCommit(t *testing.T) {
	for name, arrives := range map[string]bool{"commit arrives": true, "abort arrives": false} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, s *server) {
				done, commit := s.toTheCommit()
				s.Local.Lose()
				synctest.Wait()
				if arrives {
					s.deliver(commit)
				}
				s.deliverAll() // the abort, without effect after the commit
				o := s.outcome(done)
				switch {
				case arrives && (o.Err != nil || o.Zxid != 8<<32 || !s.has("/r")):
					t.Errorf("%+v", o)
				case !arrives && (o.Err == nil || !strings.Contains(o.Err.Error(), "nothing was changed")):
					t.Errorf("%+v", o)
				case !arrives:
					s.unchanged()
				}
			})
		})
	}
}

// Without a leader the outcome of a proposed commit is unknown. The abort is repeated until
// then.
func TestUnknownOutcome(t *testing.T) {
	inTime(t, func(t *testing.T, s *server) {
		done, _ := s.toTheCommit()
		s.Local.Lose()
		time.Sleep(SettleLimit)
		o := s.outcome(done)
		if !errors.Is(o.Err, ErrUnknown) || !strings.Contains(o.Err.Error(), SettleLimit.String()) {
			t.Errorf("%+v", o)
		}
		_, kinds := s.queued()
		if want := int(SettleLimit / settleRetry); len(kinds) < want-1 || len(kinds) > want+1 {
			t.Errorf("%d aborts in %v, want about %d", len(kinds), SettleLimit, want)
		}
		for _, k := range kinds {
			if k != command.KindRestoreAbort {
				t.Errorf("%v was proposed", k)
			}
		}
	})
}

// A server that stops while the commit is in flight does not know the outcome.
func TestStoppedAfterTheCommit(t *testing.T) {
	inTime(t, func(t *testing.T, s *server) {
		done, _ := s.toTheCommit()
		close(s.stopping)
		if o := s.outcome(done); !errors.Is(o.Err, ErrUnknown) || !errors.Is(o.Err, propose.ErrClosed) {
			t.Errorf("%+v", o)
		}
	})
}

// The outcome of another restore is ignored, and the outcome may come only once.
func TestOutcomeOfAnother(t *testing.T) {
	inTime(t, func(t *testing.T, s *server) {
		done, commit := s.toTheCommit()
		s.Settled(12345, apply.Restored{Zxid: 1})
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("it has ended with another one's outcome")
		}
		s.deliver(commit)
		if o := s.outcome(done); o.Err != nil || o.Zxid != 8<<32 {
			t.Errorf("%+v", o)
		}
		s.Settled(s.id, apply.Restored{}) // must not block
	})
}
