package propose

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// decodeRuns decodes the runs returned by take.
func decodeRuns(t *testing.T, b []byte) (runs []command.RunHeader, cmds []command.Command) {
	t.Helper()
	for len(b) > 0 {
		var h command.RunHeader
		body, rest, err := h.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		for range h.Count {
			var c command.Command
			if body, err = c.Decode(body); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, c)
		}
		if len(body) != 0 {
			t.Fatalf("%d bytes after a run", len(body))
		}
		runs, b = append(runs, h), rest
	}
	return runs, cmds
}

// numbered is a Waiter that is identified by its number.
type numbered uint64

func (numbered) Applied(*command.Applied) {}

func testLocalRuns() *LocalRuns {
	q := NewLocalRuns(1, 7, NewBacklog())
	return q
}

func request(body int) command.Command {
	return command.Command{Kind: command.KindRequest, Op: proto.OpSetData, Body: make([]byte, body)}
}

func TestLocalRunsBounds(t *testing.T) {
	t.Parallel()
	q := testLocalRuns()
	for i := range 10_000 {
		c := command.Command{Kind: command.KindSync, Session: int64(i), Waiter: numbered(i)}
		if err := q.Propose(&c, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{100_000, 100_000, 100_000, 1 << 20, 10} {
		c := request(size)
		c.Waiter = numbered(size)
		if err := q.Propose(&c, false); err != nil {
			t.Fatal(err)
		}
	}
	next, ops := uint64(1), 0
	var sizes []int
	for {
		b, n := q.Take(nil, 0)
		if n == 0 {
			break
		}
		if again, m := q.Take(b, n); m > 0 && (len(again) > MaxBatchBytes || n+m > MaxBatchOps) {
			t.Fatalf("a batch of %d bytes and %d commands", len(again), n+m)
		} else if m > 0 {
			b, n = again, n+m
		}
		runs, cmds := decodeRuns(t, b)
		if len(b) > MaxBatchBytes && len(cmds) != 1 || len(cmds) > MaxBatchOps || len(cmds) != n {
			t.Fatalf("%d bytes, %d commands, n %d", len(b), len(cmds), n)
		}
		for _, r := range runs {
			if r.First != next || r.Server != 1 || r.Nonce != 7 {
				t.Fatalf("run %+v, want first %d", r, next)
			}
			next += uint64(r.Count)
		}
		for _, c := range cmds {
			if c.Kind == command.KindSync && c.Session != int64(ops) {
				t.Fatalf("command %d stands at %d", c.Session, ops)
			}
			if c.Kind == command.KindRequest {
				sizes = append(sizes, len(c.Body))
			}
			ops++
		}
	}
	if ops != 10_005 || fmt.Sprint(sizes) != "[100000 100000 100000 1048576 10]" || !q.empty() {
		t.Fatalf("%d commands, sizes %v", ops, sizes)
	}
}

func TestLocalRunsWaiters(t *testing.T) {
	t.Parallel()
	q := testLocalRuns()
	propose := func(n int) {
		for range n {
			c := command.Command{Kind: command.KindSync, Session: int64(q.next), Waiter: numbered(q.next)}
			if err := q.Propose(&c, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(what string, got []command.Waiter, want string) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Fatalf("%s: waiters %v, want %s", what, got, want)
		}
	}
	propose(10)
	want("in order", q.Applied(nil, 1, 3), "[1 2 3]")
	want("after a hole", q.Applied(nil, 6, 2), "[6 7]")
	want("again", q.Applied(nil, 6, 2), "[<nil> <nil>]")
	want("the future", q.Applied(nil, 10, 2), "[10 <nil>]")
	propose(3) // 11, 12, 13
	if !q.Lose() || q.Lose() {
		t.Fatal("lose does not know whether something was on its way")
	}
	propose(2) // 14, 15
	want("lost", q.Applied(nil, 12, 3), "[<nil> <nil> 14]")
	var live []int64
	q.Sessions(func(id int64) { live = append(live, id) })
	if fmt.Sprint(live) != "[15]" {
		t.Fatalf("sessions on their way: %v", live)
	}
	propose(50_000)
	for num := uint64(15); num < 50_016; num += 128 {
		got := q.Applied(nil, num, 128)
		for i, w := range got {
			if w != nil && w != numbered(num+uint64(i)) {
				t.Fatalf("command %d has waiter %v", num+uint64(i), w)
			}
		}
	}
	if q.Lose() {
		t.Fatal("waiters are left")
	}
}

// TestLocalRunsBackPressure: propose blocks only while too many bytes wait.
func TestLocalRunsBackPressure(t *testing.T) {
	t.Parallel()
	q := testLocalRuns()
	blocked := make(chan error)
	fill := func() {
		for q.bytesWaiting() <= maxLocalBytes {
			c := request(200_000)
			if err := q.Propose(&c, false); err != nil {
				t.Error(err)
			}
		}
		go func() {
			c := request(10)
			blocked <- q.Propose(&c, false)
		}()
	}
	fill()
	own := command.Command{Kind: command.KindExpire}
	if err := q.Propose(&own, true); err != nil { // the leader's own commands never block
		t.Fatal(err)
	}
	select {
	case err := <-blocked:
		t.Fatalf("it did not block: %v", err)
	default:
	}
	for q.bytesWaiting() > maxLocalBytes {
		q.Take(nil, 0)
	}
	if err := <-blocked; err != nil {
		t.Fatal(err)
	}
	fill()
	q.Lose()
	if err := <-blocked; err != nil {
		t.Fatal(err)
	}
	fill()
	closed := errors.New("closed")
	q.Close(closed)
	if err := <-blocked; !errors.Is(err, closed) {
		t.Fatal(err)
	}
}

func (q *LocalRuns) bytesWaiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// We should refuse commands after a lost command until the connection is opened again. E.g.
// a client writes a znode and then another one that announces the first. If the first write
// is lost, the second must not be applied.
func TestNothingFollowsALostCommand(t *testing.T) {
	t.Parallel()
	q := NewLocalRuns(1, 1, NewBacklog())
	first := command.Command{Kind: command.KindSync}
	if err := q.Propose(&first, false); err != nil || first.Way == 0 {
		t.Fatalf("way %d: %v", first.Way, err)
	}
	second, other := command.Command{Kind: command.KindSync, Way: first.Way}, command.Command{Kind: command.KindSync}
	if err := q.Propose(&second, false); err != nil || second.Way != first.Way {
		t.Fatalf("way %d: %v", second.Way, err)
	}
	if !q.Lose() {
		t.Fatal("nothing was lost")
	}
	third := command.Command{Kind: command.KindSync, Way: second.Way}
	if err := q.Propose(&third, false); !errors.Is(err, ErrLostBefore) || !q.empty() {
		t.Errorf("what follows is taken: %v", err)
	}
	if err := q.Propose(&other, false); err != nil || other.Way == first.Way {
		t.Errorf("another connection's is not: way %d, %v", other.Way, err)
	}
}

// TestLocalRunsReusesBuffers: successive runs reuse the same buffers, except very large ones.
func TestLocalRunsReusesBuffers(t *testing.T) {
	t.Parallel()
	q := testLocalRuns()
	round := func(sizes ...int) map[*byte]bool {
		for _, size := range sizes {
			c := request(size)
			if err := q.Propose(&c, false); err != nil {
				t.Fatal(err)
			}
		}
		used := make(map[*byte]bool)
		for len(q.sealed) > 0 || q.open != nil {
			r := q.open
			if len(q.sealed) > 0 {
				r = q.sealed[0]
			}
			used[&r.buf[0]] = true
			b, n := q.Take(nil, 0)
			if _, cmds := decodeRuns(t, b); len(cmds) != n || n == 0 {
				t.Fatalf("%d commands, want %d", len(cmds), n)
			}
		}
		return used
	}
	const half = MaxBatchBytes/2 + 1
	first := round(half, half, half)
	if len(first) != maxSpares {
		t.Fatalf("%d runs", len(first))
	}
	for used := range round(half, half, half) {
		if !first[used] {
			t.Fatal("a run was built in new memory")
		}
	}
	round(2*MaxSpareBytes, half, half, half)
	for _, b := range q.spares {
		if cap(b) > MaxSpareBytes || len(b) != 0 {
			t.Fatalf("a buffer of %d bytes with %d in it is kept", cap(b), len(b))
		}
	}
	if len(q.spares) != maxSpares {
		t.Fatalf("%d buffers are kept", len(q.spares))
	}
}
