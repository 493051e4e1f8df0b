package checkers_test

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/workload"
	"github.com/zkgo/zkgo/tree"
)

// TestPlantedBugs plants a fault between the clients and a real ensemble, or into
// the ensemble, and expects the checkers of the broken guarantee to see it.
func TestPlantedBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute, and four with the race detector; not with -short")
	}
	t.Parallel()
	for _, c := range planted() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.run
			if c.bug != nil {
				r.wrap = func(id int, nc net.Conn) net.Conn { return newProxy(id, nc, c.bug) }
			}
			v := r.verdict(t)
			t.Logf("\n%s", v)
			for _, name := range c.seen {
				if !slices.Contains(v.Violated(), name) {
					t.Errorf("checker %q does not see it", name)
				}
			}
			if c.bug != nil && c.bug.happened == 0 {
				t.Error("the fault never happened")
			}
		})
	}
}

// plant is a fault and the checkers that have to see it.
type plant struct {
	name string
	seen []string
	bug  *bug
	run  run
}

func planted() []plant {
	return slices.Concat(plantedReplies(), plantedWrites(), plantedSessions(), plantedWatches(), plantedInside())
}

// pass forwards a reply.
func pass(h *proto.ReplyHeader, body []byte) [][]byte { return [][]byte{frameFor(h, body)} }

// plantedReplies are faults in replies.
func plantedReplies() []plant {
	return []plant{
		{name: "a read is answered from an old state", seen: []string{"facts"}, bug: staleReads(false)},
		{name: "a read after a sync is answered from an old state", seen: []string{"facts", "registers"}, bug: staleReads(true)},
		{name: "a sync is answered without asking the leader", seen: []string{"realtime"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				if q.op != proto.OpSync || !p.bug.happens(1) {
					return [][]byte{frame}
				}
				path := q.path
				return p.instead(h.Xid, proto.OpExists, &proto.ExistsRequest{Path: "/"}, func(h proto.ReplyHeader, _ []byte) []byte {
					return frameFor(&h, proto.AppendString(nil, path))
				})
			}}, run: run{trouble: lateFollowers}},
		{name: "linearizable reads are not", seen: []string{"realtime"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, _ request, frame []byte) [][]byte {
				if h.Op != proto.OpAuth || !p.bug.happens(1) {
					return [][]byte{frame}
				}
				return [][]byte{frameFor(&h, (&proto.AuthPacket{Scheme: "zkgo", Auth: []byte("reads=sequential")}).Append(nil))}
			}}, run: run{trouble: lateFollowers}},
		{name: "the zxid of a reply goes back", seen: []string{"sessions"}, bug: &bug{
			reply: func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
				if q.op == proto.OpExists && p.bug.happens(20) {
					h.Zxid -= 40
				}
				return pass(h, body)
			}}},
		{name: "two replies change places", seen: []string{"sessions"}, bug: &bug{
			reply: func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
				if len(p.held) > 0 {
					held := p.held
					p.held = nil
					return append(pass(h, body), held...)
				}
				if q.op == proto.OpSync && p.bug.happens(20) {
					p.held = pass(h, body)
					return nil
				}
				return pass(h, body)
			}}},
		{name: "a reply is left out", seen: []string{"sessions"}, bug: &bug{
			reply: func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
				if q.op == proto.OpSync && p.bug.happens(50) {
					return nil
				}
				return pass(h, body)
			}}},
		{name: "a reply comes twice", seen: []string{"sessions"}, bug: &bug{
			reply: func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
				if q.op == proto.OpExists && p.bug.happens(50) {
					return append(pass(h, body), pass(h, body)...)
				}
				return pass(h, body)
			}}},
		{name: "a list of children lacks one", seen: []string{"facts"}, bug: &bug{reply: shortenLists("/w/s", 5)}},
		{name: "everybody finds himself first in the queue", seen: []string{"facts", "locks"}, bug: &bug{reply: shortenLists("/w/l", 1)}},
	}
}

// lateFollowers makes one follower after the other lag behind without noticing it
// yet.
func lateFollowers(cl *zktest.Cluster) {
	for range 4 {
		time.Sleep(time.Second)
		cl.Partition([]int{cl.Follower().ID()})
		time.Sleep(time.Second)
		cl.Heal()
		cl.WaitServing()
	}
}

// linearReads makes some clients ask for linearizable reads.
func linearReads(cfg *workload.Config) { cfg.Linear, cfg.Readers = 50, 4 }

// staleReads answers getData with the body that the path had a while ago.
func staleReads(synced bool) *bug {
	return &bug{reply: func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
		if q.op != proto.OpGetData || h.Err != proto.Ok || synced && p.requests[h.Xid-1].op != proto.OpSync {
			return pass(h, body)
		}
		fault := p.bug.happens(40)
		p.bug.mu.Lock()
		defer p.bug.mu.Unlock()
		old := p.bug.memory[q.path]
		if fault && old != nil {
			return pass(h, old)
		}
		if old == nil || p.bug.happened%10 == 0 {
			p.bug.memory[q.path] = bytes.Clone(body)
		}
		return pass(h, body)
	}}
}

// shortenLists removes the first entry from a list of children, or all entries
// but the last from the queue of a lock.
func shortenLists(dir string, every int) func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
	return func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
		if q.op != proto.OpGetChildren2 || h.Err != proto.Ok || !strings.HasPrefix(q.path, dir) || !p.bug.happens(every) {
			return pass(h, body)
		}
		r := proto.NewReader(body)
		var resp proto.GetChildren2Response
		resp.Decode(&r)
		if n := len(resp.Children); n > 1 {
			slices.SortFunc(resp.Children, func(a, b string) int { return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):]) })
			resp.Children = resp.Children[1:]
			if dir == "/w/l" {
				resp.Children = resp.Children[n-2:]
			}
		}
		return pass(h, resp.Append(nil))
	}
}

// plantedWrites are faults in the execution of writes.
func plantedWrites() []plant {
	return []plant{
		{name: "a write is acknowledged and not executed", seen: []string{"facts"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				if q.op != proto.OpSetData || !p.bug.happens(20) {
					return [][]byte{frame}
				}
				return p.instead(h.Xid, proto.OpExists, &proto.ExistsRequest{Path: q.path}, func(h proto.ReplyHeader, body []byte) []byte {
					if h.Err == proto.Ok { // the stat that it would have
						var st proto.Stat
						r := proto.NewReader(body)
						st.Decode(&r)
						st.Version, st.Mzxid = st.Version+1, h.Zxid
						body = st.Append(nil)
					}
					return frameFor(&h, body)
				})
			}}},
		{name: "a write is refused and executed", seen: []string{"facts"}, bug: &bug{
			reply: func(p *proxy, h *proto.ReplyHeader, q request, body []byte) [][]byte {
				if q.op == proto.OpSetData && h.Err == proto.Ok && p.bug.happens(10) {
					h.Err, body = proto.ErrBadVersion, nil
				}
				return pass(h, body)
			}}},
		{name: "a write is executed twice", seen: []string{"facts", "registers"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				if q.op != proto.OpSetData || !p.bug.happens(20) {
					return [][]byte{frame}
				}
				again := frameFor(&proto.RequestHeader{Xid: h.Xid + 1<<20, Op: h.Op}, q.body)
				p.answers[h.Xid+1<<20] = func([]byte) [][]byte { return nil }
				return [][]byte{frame, again}
			}}},
		{name: "a delete is acknowledged and not executed", seen: []string{"facts"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				if q.op != proto.OpDelete || !strings.HasPrefix(q.path, "/w/s") || !p.bug.happens(5) {
					return [][]byte{frame}
				}
				return p.instead(h.Xid, proto.OpSync, &proto.SyncRequest{Path: "/"}, func(h proto.ReplyHeader, _ []byte) []byte { return frameFor(&h, nil) })
			}}},
		{name: "a sequence number is used again", seen: []string{"sequences"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				var req proto.CreateRequest
				r := proto.NewReader(q.body)
				req.Decode(&r)
				if q.op != proto.OpCreate2 || !proto.CreateMode(req.Flags).Sequential() || !strings.HasPrefix(q.path, "/w/s") || !p.bug.happens(30) {
					return [][]byte{frame}
				}
				req.Path, req.Flags = req.Path+"0000000001", req.Flags&^int32(proto.ModePersistentSequential)
				return [][]byte{frameFor(&h, req.Append(nil))}
			}}},
		{name: "an ephemeral znode is not", seen: []string{"ephemerals"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				var req proto.CreateRequest
				r := proto.NewReader(q.body)
				req.Decode(&r)
				if q.op != proto.OpCreate2 || !strings.HasPrefix(q.path, "/w/e") || !p.bug.happens(20) {
					return [][]byte{frame}
				}
				req.Flags = int32(proto.ModePersistent)
				return [][]byte{frameFor(&h, req.Append(nil))}
			}}},
	}
}

// plantedSessions are faults in the life of sessions.
func plantedSessions() []plant {
	return []plant{
		{name: "a session is closed and lives on", seen: []string{"ephemerals"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				if q.op != proto.OpCloseSession || !p.bug.happens(1) {
					return [][]byte{frame}
				}
				return p.instead(h.Xid, proto.OpSync, &proto.SyncRequest{Path: "/"}, func(h proto.ReplyHeader, _ []byte) []byte { return frameFor(&h, nil) })
			}}, run: run{seconds: 20}},
		{name: "an ephemeral znode goes before its session", seen: []string{"ephemerals"}, run: run{trouble: func(cl *zktest.Cluster) {
			time.Sleep(3 * time.Second)
			for path := range cl.Leader().Ephemerals() {
				if strings.HasPrefix(path, "/w/e") {
					cl.Leader().Delete(path)
				}
			}
		}}},
		{name: "a session expires whose client pings", seen: []string{"expiry"}, run: run{trouble: func(cl *zktest.Cluster) {
			time.Sleep(3 * time.Second)
			for _, s := range cl.Leader().Sessions() {
				cl.Leader().ExpireSession(s.ID)
			}
		}}},
		{name: "a holder does not hear that his session has expired", seen: []string{"locks"},
			bug: &bug{end: func(p *proxy) { p.bug.happens(1); time.Sleep(time.Second) }},
			run: run{change: func(cfg *workload.Config) { cfg.Hold = 2 * time.Second }, trouble: func(cl *zktest.Cluster) {
				for range 4 {
					time.Sleep(time.Second)
					expireHolder(cl)
				}
			}}},
	}
}

// expireHolder waits until a client holds a lock for which another client waits, and then ends the
// holder's session.
func expireHolder(cl *zktest.Cluster) {
	for range 100 {
		time.Sleep(50 * time.Millisecond)
		owners := cl.Leader().Ephemerals()
		queues := make(map[string][]string)
		for node := range owners {
			if lock := path.Dir(node); strings.HasPrefix(lock, "/w/l/") {
				queues[lock] = append(queues[lock], node)
			}
		}
		for _, queue := range queues {
			if len(queue) > 1 {
				cl.Leader().ExpireSession(owners[slices.MinFunc(queue, bySequence)])
				return
			}
		}
	}
}

// bySequence compares the sequence numbers at the end of the names.
func bySequence(a, b string) int {
	const digits = 10
	return cmp.Compare(a[len(a)-digits:], b[len(b)-digits:])
}

// plantedWatches are faults in notifications.
func plantedWatches() []plant {
	event := func(f func(p *proxy, e *proto.WatcherEvent, frame []byte) [][]byte) *bug {
		return &bug{event: func(p *proxy, e *proto.WatcherEvent, frame []byte) [][]byte {
			if !p.bug.happens(20) {
				return [][]byte{frame}
			}
			return f(p, e, frame)
		}}
	}
	late := event(func(p *proxy, _ *proto.WatcherEvent, frame []byte) [][]byte {
		p.held = append(p.held, frame)
		return nil
	})
	late.reply = func(p *proxy, h *proto.ReplyHeader, _ request, body []byte) [][]byte {
		held := p.held
		p.held = nil
		return append(pass(h, body), held...)
	}
	return []plant{
		{name: "an event is lost", seen: []string{"watches"}, bug: event(func(*proxy, *proto.WatcherEvent, []byte) [][]byte { return nil })},
		{name: "an event comes twice", seen: []string{"watches"}, bug: event(func(_ *proxy, _ *proto.WatcherEvent, frame []byte) [][]byte { return [][]byte{frame, frame} })},
		{name: "an event comes after the reply", seen: []string{"watches"}, bug: late},
		{name: "an event is of another znode", seen: []string{"watches"}, bug: event(func(_ *proxy, e *proto.WatcherEvent, frame []byte) [][]byte {
			var h proto.ReplyHeader
			r := proto.NewReader(frame)
			h.Decode(&r)
			e.Path = "/w/r/0-0"
			return [][]byte{frameFor(&h, e.Append(nil))}
		})},
		{name: "watches are not set again on another server", seen: []string{"watches"}, bug: &bug{
			up: func(p *proxy, h proto.RequestHeader, q request, frame []byte) [][]byte {
				if q.op != proto.OpSetWatches2 || !p.bug.happens(1) {
					return [][]byte{frame}
				}
				none := proto.SetWatches2{Data: []string{}, Exist: []string{}, Child: []string{}, Persistent: []string{}, PersistentRecursive: []string{}}
				return [][]byte{frameFor(&h, none.Append(nil))}
			}}, run: run{trouble: func(cl *zktest.Cluster) {
			for range 4 {
				time.Sleep(2 * time.Second)
				cl.Server(1).DropConnections()
				cl.Server(2).DropConnections()
			}
		}}},
	}
}

// plantedInside are faults in the servers themselves.
func plantedInside() []plant {
	return []plant{
		{name: "a replica has lost a znode", seen: []string{"replicas", "facts"}, run: run{last: func(cl *zktest.Cluster) {
			t := cl.Follower().Server().Node().Tree()
			t.Lock()
			defer t.Unlock()
			zxid := t.LastZxid()
			t.Apply(&tree.Txn{Zxid: zxid}, proto.OpDelete, &proto.DeleteRequest{Path: "/w/r/0-0", Version: -1})
		}}},
		{name: "a replica has other data", seen: []string{"replicas", "facts"}, run: run{last: func(cl *zktest.Cluster) {
			t := cl.Follower().Server().Node().Tree()
			t.Lock()
			defer t.Unlock()
			zxid := t.LastZxid()
			t.Apply(&tree.Txn{Zxid: zxid}, proto.OpSetData, &proto.SetDataRequest{Path: "/w/s/q0", Data: []byte("other"), Version: -1})
		}}},
		{name: "all replicas have lost what was acknowledged", seen: []string{"facts"}, run: run{last: func(cl *zktest.Cluster) {
			for _, s := range cl.Servers() {
				t := s.Server().Node().Tree()
				t.Lock()
				t.Apply(&tree.Txn{Zxid: t.LastZxid()}, proto.OpDelete, &proto.DeleteRequest{Path: "/w/c", Version: -1})
				t.Apply(&tree.Txn{Zxid: t.LastZxid()}, proto.OpDelete, &proto.DeleteRequest{Path: "/w/r/0-1", Version: -1})
				t.Unlock()
			}
		}}},
	}
}

// deaf is a server that forgets to report which sessions it hears.
type deaf struct{}

func (deaf) Accept(nc net.Conn) net.Conn           { return nc }
func (deaf) Request(server.Request) server.Verdict { return server.Verdict{} }
func (deaf) Live([]int64) []int64                  { return nil }

// TestPlantedDeafness checks that we find sessions that expire although their clients ping.
func TestPlantedDeafness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(server.Start(t.Context(), server.Config{Memory: true, TickTime: 500 * time.Millisecond, Env: server.Env{Interceptor: deaf{}}}))(t)
		defer s.Close()
		rec := history.NewRecorder(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		must.Do(t, workload.Run(ctx, workload.Config{Servers: []int{1}, Recorder: rec, Think: 200 * time.Millisecond, Calm: true,
			Dial: func(context.Context, int) (net.Conn, error) { return s.Dial() }}))
		if v := checkers.Check(rec.History(), checkers.Options{}); !slices.Contains(v.Violated(), "expiry") {
			t.Errorf("not seen:\n%s", v)
		}
	})
}
