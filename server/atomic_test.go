package server

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// glance is the state of a parent in one reply, and the zxid in the reply's header. All
// children of the parent appear and disappear together.
type glance struct {
	zxid     int64
	children int // from the parent's stat; −1: the reply is about one child
	there    bool
}

// beside starts clients that read the parent, and its first and last child, until stop is
// called. stop returns their replies and the longest time until a reply. look returns when a
// client has seen a state no older than the call.
func beside(t *testing.T, s *Server, parent, first, last string) (look func(), stop func() ([]glance, time.Duration)) {
	const readers = 3
	var over atomic.Bool
	var replies atomic.Int64
	var wg sync.WaitGroup
	seen, slowest := make([][]glance, readers), make([]time.Duration, readers)
	for i := range readers {
		w := connect(t, s)
		wg.Go(func() {
			for !over.Load() {
				for _, path := range []string{first, parent, last} {
					asked := time.Now()
					got := w.call(proto.OpExists, &proto.ExistsRequest{Path: path})
					slowest[i] = max(slowest[i], time.Since(asked))
					g := glance{zxid: got.Zxid, children: -1, there: got.Err == proto.Ok}
					if path == parent {
						var resp proto.ExistsResponse
						w.decode(got, &resp)
						g.children = int(resp.Stat.NumChildren)
					}
					seen[i] = append(seen[i], g)
					replies.Add(1)
				}
			}
		})
	}
	look = func() {
		t.Helper()
		before := replies.Load() + readers // as many replies may have been in flight
		eventually(t, "a reader sees something", func() bool { return replies.Load() > before })
	}
	return look, func() (all []glance, longest time.Duration) {
		over.Store(true)
		wg.Wait()
		for i := range readers {
			all, longest = append(all, seen[i]...), max(longest, slowest[i])
		}
		return all, longest
	}
}

// judge checks the replies against the zxids of the transactions, which alternately create
// and delete all children. A reply must show everything up to its own zxid, and nothing
// after it.
func judge(t *testing.T, seen []glance, txns []int64, children int) {
	t.Helper()
	full, empty := 0, 0
	for _, g := range seen {
		done := 0
		for done < len(txns) && txns[done] <= g.zxid {
			done++
		}
		there := done%2 == 1
		want := 0
		if there {
			want = children
			full++
		} else {
			empty++
		}
		if g.children >= 0 && g.children != want || g.children < 0 && g.there != there {
			t.Fatalf("a reply of zxid %#x, after %d transactions: %+v, want %d children", g.zxid, done, g, want)
		}
	}
	if full == 0 || empty == 0 {
		t.Errorf("%d replies with and %d without the children: this shows nothing", full, empty)
	}
}

// multiOf returns a multi that creates or deletes the children from, … to−1 of parent.
func multiOf(op proto.Op, parent string, from, to int, flags proto.CreateMode) *proto.MultiRequest {
	var m proto.MultiRequest
	for i := from; i < to; i++ {
		path := parent + "/" + strconv.Itoa(1_000_000+i)
		var req proto.Record = &proto.DeleteRequest{Path: path, Version: -1}
		if op == proto.OpCreate {
			req = &proto.CreateRequest{Path: path, ACL: proto.OpenACL(), Flags: int32(flags)}
		}
		m.Ops = append(m.Ops, proto.MultiOp{Op: op, Req: req})
	}
	return &m
}

// No client sees half of a multi of a thousand operations, or the whole multi with the
// zxid before or after it.
func TestReadersBesideALargeMulti(t *testing.T) {
	t.Parallel()
	const children, rounds = 1000, 40
	s := startServer(t)
	w := connect(t, s)
	w.create("/m", nil, proto.ModePersistent)
	look, stop := beside(t, s, "/m", "/m/1000000", "/m/"+strconv.Itoa(1_000_000+children-1))
	var txns []int64
	for i := range rounds {
		op := []proto.Op{proto.OpCreate, proto.OpDelete}[i%2]
		txns = append(txns, w.must(proto.OpMulti, multiOf(op, "/m", 0, children, proto.ModePersistent)).Zxid)
		look()
	}
	seen, longest := stop()
	judge(t, seen, txns, children)
	t.Logf("%d replies beside %d multis; the slowest took %v", len(seen), rounds, longest)
}

// No client sees half of the end of a session with many ephemeral znodes, which is also
// a single transaction.
func TestReadersBesideTheEndOfALargeSession(t *testing.T) {
	t.Parallel()
	children := 100_000
	if testing.Short() {
		children = 10_000
	}
	s := startServer(t)
	w, owner := connect(t, s), connect(t, s)
	w.create("/e", nil, proto.ModePersistent)
	last := int64(0)
	const step = 1000
	for i := 0; i < children; i += step {
		last = owner.must(proto.OpMulti, multiOf(proto.OpCreate, "/e", i, i+step, proto.ModeEphemeral)).Zxid
	}
	look, stop := beside(t, s, "/e", "/e/1000000", "/e/"+strconv.Itoa(1_000_000+children-1))
	for range 10 {
		w.must(proto.OpSync, &proto.SyncRequest{Path: "/e"})
	}
	look()
	closed := owner.must(proto.OpCloseSession, nil).Zxid
	w.must(proto.OpSync, &proto.SyncRequest{Path: "/e"})
	look()
	seen, longest := stop()
	judge(t, seen, []int64{last, closed}, children)
	t.Logf("%d replies beside the end of a session with %d znodes; the slowest took %v", len(seen), children, longest)
}
