package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum/rpc"
)

// closeCounter is a connection that counts Close calls.
type closeCounter struct {
	net.Conn
	n int
}

func (c *closeCounter) Close() error { c.n++; return nil }

// TestRoom: when memory runs out, the stream with the largest message is closed.
func TestRoom(t *testing.T) {
	t.Parallel()
	r := &room{limit: 100}
	var small, large closeCounter
	a, b := &holding{of: r, conn: &small}, &holding{of: r, conn: &large}
	if err := errors.Join(a.reserve(20), b.reserve(60)); err != nil {
		t.Fatal(err)
	}
	if err := a.reserve(30); err != nil || large.n != 1 || small.n != 0 {
		t.Fatalf("%v; the large one closed %d times, the small one %d", err, large.n, small.n)
	}
	if err := b.reserve(1); err == nil {
		t.Error("the closed one goes on")
	}
	if err := a.reserve(60); err == nil {
		t.Error("more than there is was given")
	}
	a.release()
	if r.used != 0 || len(r.holds) != 0 {
		t.Errorf("%d bytes are held for %d messages after their end", r.used, len(r.holds))
	}
}

// TestTheNewestLeaderIsBelieved: the server accepts every message of the first server
// that leads a term, regardless of Raft's current view of the leader, and none of a
// second one.
func TestTheNewestLeaderIsBelieved(t *testing.T) {
	t.Parallel()
	now := Standing{Term: 3}
	k := &checker{instance: newInstance(Config{ID: "1", Standing: func() Standing { return now }})}
	for _, step := range []struct {
		from raft.ServerID
		term uint64
		good bool
	}{
		{"5", 2, true}, {"4", 3, true}, {"5", 2, true}, {"4", 3, true}, {"5", 3, false}, {"4", 2, true}, {"2", 4, true}, {"4", 4, false}, {"2", 4, true},
	} {
		a := &raft.AppendEntriesRequest{RPCHeader: headerOf(string(step.from)), Term: step.term}
		if err := k.examine(step.from, a); (err == nil) != step.good {
			t.Errorf("server %s in term %d: %v", step.from, step.term, err)
		}
	}
	bad := &raft.AppendEntriesRequest{RPCHeader: headerOf("6"), Term: 5, PrevLogEntry: 1}
	if k.examine("6", bad) == nil || k.leaders.newest() != "2" {
		t.Error("a message that is refused makes its sender a leader")
	}
	now = Standing{Leads: true, Term: 5}
	if k.examineLeader(5) == nil || k.examineLeader(6) != nil {
		t.Error("a leader takes another one for the leader of its own term, or none of a later one")
	}
}

// TestReplacedLeaderMayLackCommittedEntries: Raft handles the messages of a replaced
// leader, and answers with the newer term. Messages of a leader of this term are checked.
func TestReplacedLeaderMayLackCommittedEntries(t *testing.T) {
	t.Parallel()
	k := &checker{instance: newInstance(Config{
		ID:       "1",
		Standing: func() Standing { return Standing{Term: 5, Committed: 10} },
		TermOf:   func(uint64) (uint64, bool) { return 5, true },
	})}
	for term, good := range map[uint64]bool{4: true, 5: false, 6: false} {
		a := &raft.AppendEntriesRequest{RPCHeader: headerOf("2"), Term: term, PrevLogEntry: 7, PrevLogTerm: 4,
			Entries: []*raft.Log{{Index: 8, Term: 4, Type: raft.LogNoop}}}
		if err := k.examineCommitted(a); (err == nil) != good {
			t.Errorf("in term %d: %v", term, err)
		}
	}
}

// TestAStreamThatEndsIsNoOffence: a snapshot breaks no rule if its sender stops in the
// middle, or its connection is lost. A complete snapshot breaks one if it is wrong, or
// shorter than announced.
func TestAStreamThatEndsIsNoOffence(t *testing.T) {
	t.Parallel()
	abc := func(r io.Reader) error {
		b, err := io.ReadAll(r)
		if err != nil || string(b) != "abc" {
			return fmt.Errorf("%q, %w", b, err)
		}
		return nil
	}
	for name, tt := range map[string]struct {
		sent    string
		size    int64
		offence bool
	}{
		"whole":              {"abc", 3, false},
		"more follows":       {"abcd", 3, false},
		"ends early":         {"ab", 3, false},
		"ends at once":       {"", 3, false},
		"wrong":              {"abx", 3, true},
		"shorter than it is": {"ab", 2, true},
	} {
		c := checkWhileReading(strings.NewReader(tt.sent), tt.size, abc)
		b, err := io.ReadAll(c)
		c.close()
		rule := (*rpc.RuleError)(nil)
		if offence := errors.As(c.err, &rule); offence != tt.offence {
			t.Errorf("%s: %v", name, c.err)
		}
		if whole := string(b) == "abc" && err == nil; whole != (tt.sent[:min(3, len(tt.sent))] == "abc") {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
