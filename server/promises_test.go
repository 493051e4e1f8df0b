package server

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// withObserver makes the last of four servers an observer.
func withObserver(c *Config) {
	list := append(c.Quorum.Members[:0:0], c.Quorum.Members...)
	list[3].Observer = true
	c.Quorum.Members = list
}

// On every server an event precedes any reply that shows its cause.
func TestEventsComeBeforeNewerReadsOnEveryServer(t *testing.T) {
	inEnsemble(t, 4, func(t *testing.T, e *ensemble) {
		rounds := cost.InShort[int32](40, 100)
		writer := connect(t, e.servers[0])
		for i, s := range e.servers {
			path := "/watched" + strconv.Itoa(i)
			writer.create(path, nil, proto.ModePersistent)
			reader := connect(t, s)
			reader.must(proto.OpSync, &proto.SyncRequest{Path: "/"})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range rounds {
					writer.set(path, "x")
				}
			}()
			version, changes := int32(-1), 0
			for version < rounds {
				reader.send(proto.OpGetData, &proto.GetDataRequest{Path: path, Watch: true})
				got, events := reader.next()
				var resp proto.GetDataResponse
				reader.decode(got, &resp)
				changed := version >= 0 && resp.Stat.Version != version
				if changed && len(events) != 1 {
					t.Fatalf("server %d: version went from %d to %d with %d events", i+1, version, resp.Stat.Version, len(events))
				}
				if changed {
					changes++
				}
				version = resp.Stat.Version
				time.Sleep(time.Millisecond)
			}
			<-done
			if changes == 0 {
				t.Errorf("server %d: no change was seen: nothing was tested", i+1)
			}
		}
	}, withObserver)
}

// When the connection to the leader is lost, the server should close the clients that wait
// for a request sent over it, and no others. It should not send lost requests again.
func TestLostLeaderConnectionClosesWaitingClients(t *testing.T) {
	inEnsemble(t, 4, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		for _, s := range others {
			idle, elsewhere, waiting := connect(t, s), connect(t, leader), connect(t, s)
			path := "/lost" + strconv.Itoa(int(s.cfg.Quorum.ID))
			time.Sleep(time.Second)
			e.net.Hold(hosts(s)[0], hosts(leader)[0])
			waiting.send(proto.OpCreate, &proto.CreateRequest{Path: path, ACL: proto.OpenACL()})
			waiting.send(proto.OpExists, &proto.ExistsRequest{Path: "/"}) // it waits for its turn
			synctest.Wait()
			e.net.Reset(hosts(s)[0], hosts(leader)[0])
			waiting.wantClosed()
			e.net.Heal(hosts(s)[0], hosts(leader)[0])
			idle.must(proto.OpPing, nil)
			if got := idle.call(proto.OpExists, &proto.ExistsRequest{Path: path}); got.Err != proto.ErrNoNode {
				t.Errorf("server %d: %v", s.cfg.Quorum.ID, got.Err)
			}
			elsewhere.must(proto.OpPing, nil)
			time.Sleep(2 * time.Second)
			idle.must(proto.OpSync, &proto.SyncRequest{Path: "/"})
			if got := idle.call(proto.OpExists, &proto.ExistsRequest{Path: path}); got.Err != proto.ErrNoNode {
				t.Errorf("server %d: a lost request was sent again: %v", s.cfg.Quorum.ID, got.Err)
			}
		}
	}, withObserver)
}

// A server should refuse a client that has seen a newer state elsewhere.
func TestLaggingServerRefusesClientWithNewerState(t *testing.T) {
	inEnsemble(t, 4, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		for _, late := range others {
			w := connect(t, leader)
			e.net.Hold(hosts(leader)[0], hosts(late)[0])
			seen := w.create("/late"+strconv.Itoa(int(late.cfg.Quorum.ID)), nil, proto.ModePersistent)
			zxid := w.must(proto.OpExists, &proto.ExistsRequest{Path: seen}).Zxid
			for _, session := range []int64{0, w.resp.SessionID} {
				refused := dial(t, late)
				req := proto.ConnectRequest{TimeOut: 30000, LastZxidSeen: zxid, SessionID: session, Passwd: w.resp.Passwd}
				asked := time.Now()
				refused.write(proto.AppendFrame(nil, req.Append(nil)))
				refused.wantClosed()
				if waited := time.Since(asked); waited > time.Second {
					t.Errorf("refused after %v", waited)
				}
			}
			w.must(proto.OpPing, nil) // no client resumed its session
			e.net.Heal(hosts(leader)[0], hosts(late)[0])
			eventually(t, "the server has caught up", func() bool {
				late.tree.RLock()
				defer late.tree.RUnlock()
				return late.tree.LastZxid() >= zxid
			})
			var taken *wire
			eventually(t, "the server accepts it", func() bool {
				taken = dial(t, late)
				req := proto.ConnectRequest{TimeOut: 30000, LastZxidSeen: zxid, SessionID: w.resp.SessionID, Passwd: w.resp.Passwd}
				taken.write(proto.AppendFrame(nil, req.Append(nil)))
				frame, err := taken.frame()
				if err != nil {
					return false
				}
				r := proto.NewReader(frame)
				taken.resp.Decode(&r)
				return true
			})
			if taken.resp.SessionID != w.resp.SessionID {
				t.Errorf("%+v", taken.resp)
			}
		}
	}, withObserver)
}

// survivor is a client that pings, and resumes its session on another server when its
// connection ends.
type survivor struct {
	*wire
	at          int // index of its server
	moved, lost int
	needless    int // moves away from a server that wasn't cut off
}

func (v *survivor) live(t *testing.T, e *ensemble, timeout time.Duration, cut *atomic.Int64, over *atomic.Bool) {
	for !over.Load() {
		_, err := v.nc.Write(appendRequest(nil, proto.XidPing, proto.OpPing, nil))
		if err == nil {
			_, err = v.frame()
		}
		if err == nil {
			time.Sleep(timeout / 4)
			continue
		}
		if int64(v.at) != cut.Load() {
			v.needless++
		}
		for !over.Load() {
			v.at = (v.at + 1) % len(e.servers)
			next := dial(t, e.servers[v.at])
			req := proto.ConnectRequest{TimeOut: int32(timeout / time.Millisecond), SessionID: v.resp.SessionID, Passwd: v.resp.Passwd}
			next.nc.SetDeadline(time.Now().Add(timeout / 6)) //nolint:errcheck // of a pipe
			if _, err := next.nc.Write(proto.AppendFrame(nil, req.Append(nil))); err != nil {
				continue
			}
			frame, err := next.frame()
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			next.nc.SetDeadline(time.Now().Add(time.Hour)) //nolint:errcheck // of a pipe
			r := proto.NewReader(frame)
			if next.resp.Decode(&r); next.resp.TimeOut == 0 {
				v.lost++
				return
			}
			v.wire, v.moved = next, v.moved+1
			break
		}
	}
}

// No session of a pinging client should expire, whatever the load, while one leader after
// the other is cut off. Only the clients of the server that is cut off should have to move.
func TestPingingSessionsOutliveTheirLeaders(t *testing.T) {
	inEnsemble(t, 4, func(t *testing.T, e *ensemble) {
		const timeout = 8 * time.Second
		var over atomic.Bool
		var cut atomic.Int64 // the server that is or was cut off
		var clients []*survivor
		done := make(chan struct{})
		for i := range 3 * len(e.servers) {
			v := &survivor{at: i % len(e.servers), wire: short(t, e.servers[i%len(e.servers)], timeout)}
			v.nc.SetDeadline(time.Now().Add(time.Hour)) //nolint:errcheck // of a pipe
			clients = append(clients, v)
			go func() { v.live(t, e, timeout, &cut, &over); done <- struct{}{} }()
		}
		for i := range cost.InShort(3, 6) {
			leader, others := e.leader()
			load := connect(t, others[0])
			var b []byte
			for j := range int32(500) {
				b = appendRequest(b, j, proto.OpCreate, &proto.CreateRequest{Path: "/l" + strconv.Itoa(i) + "-" + strconv.Itoa(int(j)), ACL: proto.OpenACL()})
			}
			go load.nc.Write(b) //nolint:errcheck // the server may close it
			go func() {
				for {
					if _, err := load.frame(); err != nil {
						return
					}
				}
			}()
			cut.Store(int64(leader.cfg.Quorum.ID) - 1)
			e.net.Partition(hosts(leader), hosts(others...))
			time.Sleep(timeout * 3 / 4)
			e.net.Rejoin(hosts(leader), hosts(others...))
			time.Sleep(timeout)
			load.nc.Close()
		}
		over.Store(true)
		moved := 0
		for range clients {
			<-done
		}
		for i, v := range clients {
			moved += v.moved
			if v.lost > 0 {
				t.Errorf("client %d lost its session", i)
			}
			if v.needless > 0 {
				t.Errorf("client %d was closed %d times by a server that was in touch", i, v.needless)
			}
		}
		if moved == 0 {
			t.Error("no client had to move: nothing was tested")
		}
	}, withObserver, func(c *Config) {
		c.TickTime, c.Quorum.SyncLimit, c.MinSessionTimeout = 500*time.Millisecond, 20, time.Second
	})
}
