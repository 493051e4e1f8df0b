package transport

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

func TestMayStand(t *testing.T) {
	t.Parallel()
	at := func(term, index uint64) standing { return standing{Term: term, Index: index} }
	following := func(s standing, leader raft.ServerID) standing { s.Leader = leader; return s }
	candidate := func(s standing) standing { s.Candidate = true; return s }
	abstaining := func(s standing) standing { s.Abstains = true; return s }
	is := func(id raft.ServerID, s standing) reply { return reply{id, answered, s} }
	gone := func(id raft.ServerID) reply { return reply{id: id, presence: absent} }
	mute := func(id raft.ServerID) reply { return reply{id: id} }
	mine := following(at(5, 10), "3")
	for _, c := range []struct {
		name               string
		mine               standing
		replies            []reply
		patient, impatient bool
	}{
		{"the leader is gone, the other has less", mine, []reply{is("1", at(5, 9)), gone("3")}, true, true},
		{"the other follows who is gone", mine, []reply{is("1", following(at(5, 9), "3")), gone("3")}, true, true},
		{"the other has more", mine, []reply{is("1", at(5, 11)), gone("3")}, false, false},
		{"the other has a later term", mine, []reply{is("1", at(6, 2)), gone("3")}, false, false},
		{"as good, lower id", mine, []reply{is("1", at(5, 10)), gone("3")}, true, true},
		{"as good, higher id: not at first", mine, []reply{is("4", at(5, 10)), gone("3")}, false, true},
		{"as good, and stands: not at first", mine, []reply{is("1", candidate(at(5, 10))), gone("3")}, false, true},
		{"has less, and stands: it cannot win", mine, []reply{is("1", candidate(at(5, 9))), gone("3")}, true, true},
		{"one was elected meanwhile, with any log", mine, []reply{is("1", following(at(5, 9), "1")), gone("3")}, false, false},
		{"the leader says that it does not lead any more", mine, []reply{is("1", at(5, 9)), is("3", at(5, 10))}, false, true},
		{"a server follows one that does not answer", at(5, 10), []reply{is("1", following(at(5, 9), "3")), mute("3")}, false, false},
		{"a server follows one that is gone", at(5, 10), []reply{is("1", following(at(5, 9), "3")), gone("3")}, true, true},
		{"a server follows one without a vote here", at(5, 10), []reply{is("1", following(at(5, 9), "9")), gone("3")}, false, false},
		{"a server still follows this one", at(5, 10), []reply{is("1", following(at(5, 9), "2")), gone("3")}, true, true},
		{"one does not answer: not at first", at(5, 10), []reply{is("1", at(5, 9)), mute("3")}, false, true},
		{"no majority", at(5, 10), []reply{gone("1"), mute("3")}, false, false},
		{"two of five", at(5, 10), []reply{is("1", at(5, 9)), gone("3"), gone("4"), gone("5")}, false, false},
		{"three of five", at(5, 10), []reply{is("1", at(5, 9)), is("3", at(5, 9)), gone("4"), gone("5")}, true, true},
		{"one with more abstains", at(5, 10), []reply{is("1", at(5, 9)), is("3", abstaining(at(5, 11)))}, true, true},
		{"one as good with a higher id abstains", at(5, 10), []reply{is("1", at(5, 9)), is("3", abstaining(at(5, 10)))}, true, true},
		{"the vote of one that abstains is needed, and it has more", at(5, 10), []reply{gone("1"), is("3", abstaining(at(5, 11)))}, false, false},
		{"the vote of one that abstains is needed", at(5, 10), []reply{gone("1"), is("3", abstaining(at(5, 10)))}, true, true},
		{"this server stands already", candidate(at(5, 10)), []reply{is("1", at(5, 9)), gone("3")}, false, false},
	} {
		if got := mayStand("2", c.mine, c.replies, true); got != c.patient {
			t.Errorf("%s: patient: %v", c.name, got)
		}
		if got := mayStand("2", c.mine, c.replies, false); got != c.impatient {
			t.Errorf("%s: impatient: %v", c.name, got)
		}
	}
}

// voter is a server with a View that the test sets.
type voter struct {
	trans *Transport

	mu   sync.Mutex
	view View
}

func (v *voter) set(leader raft.ServerID, index uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.view.Leader, v.view.LastIndex, v.view.LastTerm = leader, index, 1
}

func (v *voter) View() View {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.view
}

// startVoters starts the transports of n servers, without Raft.
func startVoters(t *testing.T, m *quorum.Memory, n int) []*voter {
	var conf raft.Configuration
	for i := 1; i <= n; i++ {
		conf.Servers = append(conf.Servers, raft.Server{ID: raft.ServerID(fmt.Sprint(i)), Address: raft.ServerAddress(fmt.Sprintf("s%d:1", i))})
	}
	var voters []*voter
	for _, s := range conf.Servers {
		v := &voter{view: View{Config: conf}}
		hub := newHub(t, m, quorum.Identity{ServerID: string(s.ID), Cluster: quorum.ClusterID{1}}, io.Discard)
		v.trans = New(Config{Hub: hub, ID: s.ID, Addr: string(s.Address), View: v.View})
		t.Cleanup(func() {
			_ = v.trans.Close()
			_ = hub.Close()
		})
		voters = append(voters, v)
	}
	return voters
}

// stands reports whether the server starts an election within limit.
func (v *voter) stands(limit time.Duration) bool {
	select {
	case rpc := <-v.trans.Consumer():
		_, kicked := rpc.Command.(*raft.TimeoutNowRequest)
		rpc.Respond(&raft.TimeoutNowResponse{}, nil)
		return kicked
	case <-time.After(limit):
		return false
	}
}

// TestNewLeaderIsNotDeposedByUninformedServers: the leader is killed, another one is
// elected, and its first message to the third server is slow.
func TestNewLeaderIsNotDeposedByUninformedServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		v := startVoters(t, m, 3)
		v[0].set("3", 10)
		v[1].set("2", 10) // elected, but only server 2 knows it
		m.Kill("s3")
		v[0].trans.Suspect("3")
		if v[0].stands(time.Minute) {
			t.Fatal("a server stands against a leader that was just elected")
		}
		// That leader is lost, too: the watch has continued.
		v[1].set("", 9)
		if !v[0].stands(time.Second) {
			t.Fatal("no server stands when there is no leader any more")
		}
		v[0].set("1", 12)
	})
}

// TestChangeDuringAPollStopsTheElection: while this server waits for the answers of the others, it
// becomes leader or candidate itself, follows a new leader, or grants its vote. If it
// then started an election, it would depose the server that was just elected.
func TestChangeDuringAPollStopsTheElection(t *testing.T) {
	for name, change := range map[string]func(*View){
		"leads":       func(v *View) { v.Leader, v.Term = "1", 8 },
		"stands":      func(v *View) { v.Candidate = true },
		"follows":     func(v *View) { v.Leader, v.Term = "2", 8 },
		"has voted":   func(v *View) { v.Term = 8 },
		"no more led": func(v *View) { v.Leader = "" },
	} {
		stood, changed := 0, 0
		for after := time.Millisecond; after < 300*time.Millisecond; after += 3 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				m := quorum.NewMemory()
				v := startVoters(t, m, 3)
				v[0].set("3", 10)
				v[1].set("3", 9)
				m.Kill("s3")
				for _, way := range [][2]string{{"s1", "s2"}, {"s2", "s1"}} {
					m.Delay(way[0], way[1], 20*time.Millisecond)
				}
				began := time.Now()
				v[0].trans.Suspect("3")
				time.AfterFunc(after, func() {
					v[0].mu.Lock()
					defer v[0].mu.Unlock()
					change(&v[0].view)
				})
				// A poll lasts 40 ms: a server that starts an election earlier has polled
				// before the change.
				asked := v[0].stands(after + 39*time.Millisecond)
				switch took := time.Since(began); {
				case asked && took > after:
					t.Errorf("%s after %v: the server stands after %v", name, after, took)
				case asked:
					stood++
				default:
					changed++
				}
				v[0].set("2", 12)
			})
		}
		if stood == 0 || changed == 0 {
			t.Errorf("%s: it stood %d times, did not %d times: nothing is shown", name, stood, changed)
		}
	}
}

// TestLeaderIsSoughtUntilThereIsOne: the server with the better log starts elections, as
// often as necessary, and a server with a shorter log never does.
func TestLeaderIsSoughtUntilThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		v := startVoters(t, m, 3)
		v[0].set("", 12)
		v[1].set("", 11)
		m.Kill("s3")
		for _, x := range v[:2] {
			x.trans.Leaderless()
		}
		for range 3 { // as if every election were lost
			if !v[0].stands(2 * time.Second) {
				t.Fatal("the server with the longest log does not stand")
			}
		}
		if v[1].stands(time.Minute) {
			t.Fatal("a server stands that cannot be elected")
		}
		for _, x := range v {
			x.set("1", 13)
		}
	})
}

// TestDyingLeaderIsNotTakenForLiving: a dying process closes its connections shortly before
// its port refuses new ones.
func TestDyingLeaderIsNotTakenForLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		v := startVoters(t, m, 3)
		for _, x := range v {
			x.set("3", 10)
		}
		_ = v[2].trans.Close() // connections end without an answer
		v[1].trans.Suspect("3")
		time.Sleep(50 * time.Millisecond)
		m.Kill("s3")
		if !v[1].stands(time.Second) {
			t.Fatal("the first look at a dying leader ended the search")
		}
		v[1].set("2", 11)
	})
}

// TestFrozenLeaderIsForTheTimers: a process that doesn't answer may only be slow, so we
// leave it to Raft's timers.
func TestFrozenLeaderIsForTheTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		v := startVoters(t, m, 3)
		for _, x := range v {
			x.set("3", 10)
		}
		m.Partition([]string{"s3"}, []string{"s1", "s2"})
		v[1].trans.Suspect("3")
		if v[1].stands(time.Minute) {
			t.Fatal("a server stands against a leader that may be slow")
		}
		// Raft's timers have run out, here and later on the other server.
		v[1].set("", 10)
		v[1].trans.Leaderless()
		if v[1].stands(time.Minute) {
			t.Fatal("a server stands against a leader that another one follows")
		}
		v[0].set("", 10)
		if !v[1].stands(2 * time.Second) {
			t.Fatal("no server stands when none follows any more")
		}
		v[1].set("2", 11)
	})
}

// TestRequestForAVoteGoesFirst: while a slow disk keeps Raft from handling a vote
// request, this server should not become a candidate, too.
func TestRequestForAVoteGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		v := startVoters(t, m, 3)
		v[0].set("", 10)
		v[1].set("", 10)
		m.Kill("s3")
		asked := make(chan error, 1)
		go func() {
			var resp raft.RequestVoteResponse
			asked <- v[1].trans.RequestVote("1", "s1:1", &raft.RequestVoteRequest{RPCHeader: headerOf("2"), Term: 2}, &resp)
		}()
		time.Sleep(10 * time.Millisecond)
		v[0].trans.Leaderless()
		time.Sleep(2 * time.Second) // the disk is slow
		rpc := <-v[0].trans.Consumer()
		if _, ok := rpc.Command.(*raft.RequestVoteRequest); !ok {
			t.Fatalf("%T overtakes a request for a vote", rpc.Command)
		}
		if v[0].stands(2 * time.Second) {
			t.Fatal("a server stands while its disk decides on a vote")
		}
		rpc.Respond(&raft.RequestVoteResponse{Term: 2}, nil)
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
		if !v[0].stands(2 * time.Second) {
			t.Fatal("no server stands when the vote was not enough")
		}
		v[0].set("1", 11)
	})
}

// TestLeaderThatAnswersIsLeftAlone: a closed connection alone should not start an election.
func TestLeaderThatAnswersIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startVoters(t, quorum.NewMemory(), 3)
		for _, x := range v {
			x.set("3", 10)
		}
		v[1].trans.Suspect("3")
		if v[1].stands(time.Minute) {
			t.Fatal("a server stands against a leader that is well")
		}
		// After a restart it knows no leader.
		v[2].set("", 9)
		v[1].trans.Suspect("3")
		if !v[1].stands(time.Second) {
			t.Fatal("no server stands although the leader says that it does not lead")
		}
		v[1].set("2", 11)
	})
}

// TestVoteIsAskedOfTheNewProcess: pooled connections to a restarted server are dead, but we
// notice that only when we use them.
func TestVoteIsAskedOfTheNewProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		v := startVoters(t, m, 2)
		ask := func() error {
			var resp raft.RequestVoteResponse
			return v[0].trans.RequestVote("2", "s2:1", &raft.RequestVoteRequest{RPCHeader: headerOf("1"), Term: 2}, &resp)
		}
		// Send as many requests concurrently as there are pooled connections.
		asked := make(chan error, maxPool)
		for range maxPool {
			go func() { asked <- ask() }()
		}
		synctest.Wait()
		answer := func(to *Transport) {
			rpc := <-to.Consumer()
			rpc.Respond(&raft.RequestVoteResponse{Term: 2}, nil)
		}
		for range maxPool {
			answer(v[1].trans)
			if err := <-asked; err != nil {
				t.Fatal(err)
			}
		}
		m.Kill("s2")
		next := New(Config{Hub: newHub(t, m, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard), ID: "2", Addr: "s2:1"})
		defer next.Close()
		go answer(next)
		if err := ask(); err != nil {
			t.Fatalf("the new process is not asked: %v", err)
		}
	})
}

func TestPollTriesEveryAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		ln, err := m.Host("old").Listen("old:1")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		voters := startVoters(t, m, 2)
		voters[0].trans.cfg.Elsewhere = func(raft.ServerID) []string { return []string{"s2:1"} }
		ctx, cancel := context.WithTimeout(t.Context(), askLimit)
		defer cancel()
		if v := voters[0].trans.poll.ask(ctx, raft.Server{ID: "2", Address: "old:1"}); v.presence != answered {
			t.Fatalf("presence %v", v.presence)
		}
	})
}
