package server

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// ensemble is a set of servers in one process.
type ensemble struct {
	t       testing.TB
	net     *quorum.Memory
	servers []*Server // by id − 1
}

func host(id int) string { return "host" + strconv.Itoa(id) }

// startEnsemble starts n servers and waits until they all serve.
func startEnsemble(t testing.TB, n int, change ...func(*Config)) *ensemble {
	t.Helper()
	e := &ensemble{t: t, net: quorum.NewMemory()}
	var members []raftfsm.Member
	for id := 1; id <= n; id++ {
		members = append(members, raftfsm.Member{ID: uint64(id), QuorumAddr: host(id) + ":2888", ElectionAddr: host(id) + ":3888"})
	}
	for id := 1; id <= n; id++ {
		e.servers = append(e.servers, startServer(t, append([]func(*Config){func(c *Config) {
			c.Quorum.ID, c.Quorum.Members, c.Env.Network = uint64(id), members, e.net.Host(host(id))
		}}, change...)...))
	}
	for id, s := range e.servers {
		select {
		case <-s.Ready():
		case <-time.After(patience):
			t.Fatalf("server %d does not serve: %+v", id+1, s.Node().Status())
		}
	}
	return e
}

// TestLateEnsembleServesImmediately starts one server long before the others. It serves
// its clients as soon as the ensemble is complete, and doesn't wait for the next check
// of its state's age.
func TestLateEnsembleServesImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := quorum.NewMemory()
		var members []raftfsm.Member
		for id := 1; id <= 3; id++ {
			members = append(members, raftfsm.Member{ID: uint64(id), QuorumAddr: host(id) + ":2888", ElectionAddr: host(id) + ":3888"})
		}
		var first *Server
		for id := 1; id <= 3; id++ {
			s := startServer(t, func(c *Config) {
				c.Quorum.ID, c.Quorum.Members, c.Env.Network = uint64(id), members, network.Host(host(id))
			})
			if first == nil {
				first = s
				time.Sleep(10500 * time.Millisecond)
			}
		}
		eventually(t, "the first server takes part", func() bool { return first.Node().Status().Serving })
		synctest.Wait()
		if m, _ := first.modes.get(); m != serving {
			t.Errorf("its mode is %v", m)
		}
	})
}

// leader returns the leader and the other servers.
func (e *ensemble) leader() (leader *Server, others []*Server) {
	e.t.Helper()
	eventually(e.t, "there is a leader", func() bool {
		leader, others = nil, nil
		for _, s := range e.servers {
			if s.Node().Status().Role == raftfsm.Leader {
				leader = s
			} else {
				others = append(others, s)
			}
		}
		return leader != nil
	})
	return leader, others
}

// inEnsemble runs a test with n servers in simulated time: a busy machine doesn't cause
// elections.
func inEnsemble(t *testing.T, n int, test func(t *testing.T, e *ensemble), change ...func(*Config)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, startEnsemble(t, n, change...)) })
}

// TestReadsKeepTheirOrderOnEveryServer: a read sees its session's writes before it and
// none after it, even if one log entry contains all these writes; on the leader, on a
// follower and on an observer.
func TestReadsKeepTheirOrderOnEveryServer(t *testing.T) {
	observed := func(c *Config) {
		c.Quorum.Members = slices.Clone(c.Quorum.Members)
		c.Quorum.Members[len(c.Quorum.Members)-1].Observer = true
	}
	inEnsemble(t, 4, func(t *testing.T, e *ensemble) {
		roles := make(map[raftfsm.Role]bool)
		for i, s := range e.servers {
			roles[s.Node().Status().Role] = true
			readsStandBetweenWrites(t, connect(t, s), "/order"+strconv.Itoa(i))
		}
		if len(roles) != 3 {
			t.Errorf("roles: %v", roles)
		}
	}, observed)
}

func readsStandBetweenWrites(t *testing.T, w *wire, path string) {
	t.Helper()
	w.create(path, nil, proto.ModePersistent)
	const rounds = 1000
	var b []byte
	for i := range int32(rounds) {
		b = appendRequest(b, 2*i+1, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: strconv.AppendInt(nil, int64(i), 10), Version: -1})
		b = appendRequest(b, 2*i+2, proto.OpGetData, &proto.GetDataRequest{Path: path})
	}
	go w.nc.Write(b)
	last := int64(0)
	for i := range int32(rounds) {
		set, get := w.recv(), w.recv()
		var resp proto.GetDataResponse
		w.decode(get, &resp)
		if set.Xid != 2*i+1 || string(resp.Data) != strconv.Itoa(int(i)) || set.Zxid < last || get.Zxid < set.Zxid {
			t.Fatalf("round %d after zxid %#x: %+v, then %q %+v", i, last, set.ReplyHeader, resp.Data, get.ReplyHeader)
		}
		last = get.Zxid
	}
}

func TestASessionMovesBetweenServers(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		_, others := e.leader()
		w := connect(t, others[0])
		w.create("/moves", nil, proto.ModeEphemeral)
		next := w.again(others[1], w.resp.Passwd) // immediately, however far that server is in the log
		if next.resp.SessionID != w.resp.SessionID {
			t.Fatalf("moved to %+v", next.resp)
		}
		w.wantClosed()
		next.must(proto.OpDelete, &proto.DeleteRequest{Path: "/moves", Version: -1})
	})
}

func TestSyncShowsOtherClientsWrites(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		_, others := e.leader()
		a, b := connect(t, others[0]), connect(t, others[1])
		a.create("/synced", nil, proto.ModePersistent)
		for i := range 50 {
			a.set("/synced", strconv.Itoa(i))
			b.must(proto.OpSync, &proto.SyncRequest{Path: "/"})
			if data, _ := b.get("/synced", false); data != strconv.Itoa(i) {
				t.Fatalf("after sync: %q, want %d", data, i)
			}
		}
	})
}

func TestCommandsShowTheRoles(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		if got := sourceOf(leader).Server().Mode; got != "leader" {
			t.Errorf("the leader is a %s", got)
		}
		if got := sourceOf(others[0]).Server().Mode; got != "follower" {
			t.Errorf("a follower is a %s", got)
		}
		if got := sourceOf(leader).Configuration(); !got.Ensemble || got.Membership == "" || got.QuorumPort != 2888 {
			t.Errorf("configuration %+v", got)
		}
	})
}

// When the leader dies, a client without requests in flight stays connected to its
// server and keeps its session.
func TestClientsSurviveTheLeader(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		w := connect(t, others[0])
		w.create("/e", nil, proto.ModeEphemeral)
		for id, s := range e.servers {
			if s == leader {
				e.net.Kill(host(id + 1))
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		eventually(t, "the others serve under another leader", func() bool {
			for _, s := range others {
				st := s.Node().Status()
				if !st.Serving || st.Leader == leader.cfg.Quorum.ID {
					return false
				}
			}
			return true
		})
		if _, st := w.get("/e", false); st.EphemeralOwner != w.resp.SessionID {
			t.Errorf("owner 0x%x", st.EphemeralOwner)
		}
		w.create("/later", nil, proto.ModePersistent)
	})
}

// A server that is cut off stops answering before its clients' sessions can expire. In
// read-only mode it answers clients that asked for it.
func TestReadOnlyMode(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		_, others := e.leader()
		s := others[0]
		w := connect(t, s)
		w.create("/a", []byte("x"), proto.ModePersistent)
		var rest []string
		for id, other := range e.servers {
			if other != s {
				rest = append(rest, host(id+1))
			}
		}
		cut := host(int(s.cfg.Quorum.ID))
		e.net.Partition([]string{cut}, rest)
		w.wantClosed()
		eventually(t, "the server is read-only", func() bool { m, _ := s.modes.get(); return m == readOnly })

		refused := dial(t, s)
		req := proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true}
		refused.write(proto.AppendFrame(nil, req.Append(nil)))
		refused.wantClosed()

		ro := dial(t, s)
		ro.handshake(proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true, ReadOnly: true})
		if global, _ := s.node.Sessions().Get(ro.resp.SessionID); !ro.resp.ReadOnly || global.ID != 0 || uint64(ro.resp.SessionID)>>40 != 0xff0000 {
			t.Fatalf("%+v", ro.resp)
		}
		if data, _ := ro.get("/a", true); data != "x" {
			t.Errorf("read %q", data)
		}
		for _, op := range []proto.Op{proto.OpSetData, proto.OpSync, proto.OpMulti, proto.OpReconfig} {
			if got := ro.call(op, nil); got.Err != proto.ErrNotReadOnly {
				t.Errorf("%v: %v", op, got.Err)
			}
		}
		if got := word(t, s, "isro"); got != "ro" {
			t.Errorf("isro: %q", got)
		}
		if got := sourceOf(s).Server(); got.Mode != "read-only" || got.LocalSessions != 1 {
			t.Errorf("%+v", got)
		}
		over := dial(t, s)
		over.handshake(proto.ConnectRequest{TimeOut: 30000, ReadOnly: true, HasReadOnly: true})
		over.must(proto.OpCloseSession, nil)
		over.wantClosed()
		again := dial(t, s)
		closed := proto.ConnectRequest{TimeOut: 30000, ReadOnly: true, HasReadOnly: true, SessionID: over.resp.SessionID, Passwd: over.resp.Passwd}
		again.write(proto.AppendFrame(nil, closed.Append(nil)))
		again.wantClosed() // because its session has ended
		e.net.Rejoin([]string{cut}, rest)
		ro.wantClosed()
		eventually(t, "the server is back", func() bool { m, _ := s.modes.get(); return m == serving })
		back := dial(t, s)
		back.handshake(proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true, SessionID: ro.resp.SessionID, Passwd: ro.resp.Passwd})
		if back.resp.TimeOut != 0 {
			t.Error("the ensemble resumed a session of read-only mode")
		}
	}, func(c *Config) { c.ReadOnlyMode, c.LocalSessions, c.TickTime = true, true, 200*time.Millisecond })
}

// Without local sessions, no session begins in read-only mode: the client gets
// ZooKeeper's answer, a reply header with NotReadOnly.
func TestReadOnlyModeWithoutLocalSessions(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		_, others := e.leader()
		s := others[0]
		var rest []string
		for id, other := range e.servers {
			if other != s {
				rest = append(rest, host(id+1))
			}
		}
		e.net.Partition([]string{host(int(s.cfg.Quorum.ID))}, rest)
		eventually(t, "the server is read-only", func() bool { m, _ := s.modes.get(); return m == readOnly })
		refused := dial(t, s)
		req := proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true, ReadOnly: true}
		refused.write(proto.AppendFrame(nil, req.Append(nil)))
		var h proto.ReplyHeader
		frame, err := refused.frame()
		if err != nil {
			t.Fatal(err)
		}
		r := proto.NewReader(frame)
		if h.Decode(&r); r.Err() != nil || len(r.Rest()) > 0 || h != (proto.ReplyHeader{Err: proto.ErrNotReadOnly}) {
			t.Errorf("the answer is %+v, %v", h, r.Err())
		}
		refused.wantClosed()
		if n := s.stats.ReadOnlyRefused.Load(); n != 1 {
			t.Errorf("%d refusals counted", n)
		}
	}, func(c *Config) { c.ReadOnlyMode, c.TickTime = true, 200*time.Millisecond })
}

// Many clients use all servers at once, and every client gets its answers.
func TestEnsembleUnderLoad(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		const clients, each = 12, 100
		done := make(chan error, clients)
		for i := range clients {
			w := connect(t, e.servers[i%len(e.servers)])
			go func() {
				var b []byte
				for j := range int32(each) {
					b = appendRequest(b, j, proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprintf("/c%d-%d", i, j), ACL: proto.OpenACL()})
					b = appendRequest(b, j, proto.OpExists, &proto.ExistsRequest{Path: fmt.Sprintf("/c%d-%d", i, j)})
				}
				w.nc.Write(b)
				for range 2 * each {
					frame, err := w.frame()
					if err != nil {
						done <- err
						return
					}
					r := proto.NewReader(frame)
					var h proto.ReplyHeader
					if h.Decode(&r); h.Err != proto.Ok {
						done <- h.Err
						return
					}
				}
				done <- nil
			}()
		}
		for range clients {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	})
}
