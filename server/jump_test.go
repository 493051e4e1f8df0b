package server

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Requests that a session's old connection left on the wire should have no effect after the
// client has moved to another server, even under another leader: if the client didn't see
// their effect there, they must never be executed.
func TestRequestsOfAnOldConnectionAreNotExecuted(t *testing.T) {
	for _, elected := range []bool{false, true} {
		t.Run(fmt.Sprintf("elected=%t", elected), func(t *testing.T) {
			inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				leader, others := e.leader()
				old, next := others[0], others[1]
				w := connect(t, old)
				time.Sleep(time.Second)
				e.net.Hold(hosts(old)[0], hosts(leader)[0])
				const creates = 20
				for i := range creates {
					w.send(proto.OpCreate, &proto.CreateRequest{Path: "/left-" + strconv.Itoa(i), ACL: proto.OpenACL()})
				}
				synctest.Wait()
				moved := w.again(next, w.resp.Passwd)
				moved.must(proto.OpSync, &proto.SyncRequest{Path: "/"})
				if got := moved.call(proto.OpExists, &proto.ExistsRequest{Path: "/left-0"}); got.Err != proto.ErrNoNode {
					t.Fatalf("the request succeeded: %v; nothing was tested", got.Err)
				}
				if elected {
					if err := leader.Node().Transfer(t.Context()); err != nil {
						t.Fatal(err)
					}
					eventually(t, "another leader", func() bool { return next.Node().Status().Leader == next.cfg.Quorum.ID })
					moved = moved.again(next, moved.resp.Passwd) // it may still have been in touch with the leader
				}
				moved.create("/mine", nil, proto.ModePersistent)
				e.net.Heal(hosts(old)[0], hosts(leader)[0])
				time.Sleep(2 * time.Second)
				for _, s := range e.servers {
					awaitNode(t, s, "/mine", true)
					for i := range creates {
						awaitNode(t, s, "/left-"+strconv.Itoa(i), false)
					}
				}
				w.wantClosed()
				moved.must(proto.OpPing, nil)
			})
		})
	}
}

// A server that receives a snapshot first closes its clients, because their watches and
// requests missed the transactions it skips. A client that returns and sets its
// watches again gets the events that it missed.
func TestASnapshotFromTheLeaderClosesClients(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		late := others[0]
		w, idle, writer := connect(t, late), connect(t, late), connect(t, leader)
		w.create("/watched", []byte("old"), proto.ModePersistent)
		seen := w.must(proto.OpExists, &proto.ExistsRequest{Path: "/watched", Watch: true}).Zxid
		w.must(proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/watched", Watch: true})
		before := late.Node().Tree()
		e.net.Partition(hosts(late), hosts(leader, others[1]))
		for i := range 100 {
			writer.set("/watched", strconv.Itoa(i))
		}
		writer.create("/watched/child", nil, proto.ModePersistent)
		for _, s := range []*Server{leader, others[1]} {
			if err := s.Node().Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		w.send(proto.OpSetData, &proto.SetDataRequest{Path: "/watched", Data: []byte("never"), Version: 0})
		idle.must(proto.OpPing, nil)
		time.Sleep(2 * time.Second)
		idle.must(proto.OpPing, nil)
		healed := time.Now()
		e.net.Rejoin(hosts(late), hosts(leader, others[1]))
		for { // transactions before the snapshot fire its watches
			frame, err := w.frame()
			if err != nil {
				break
			}
			if got := decodeReply(t, frame); got.Xid != proto.XidNotification {
				t.Errorf("an answer came: %+v", got)
			}
		}
		idle.wantClosed()
		if d := time.Since(healed); d > 5*time.Second {
			t.Errorf("clients were closed %v after the server was back", d)
		}
		awaitNode(t, late, "/watched/child", true)
		if late.Node().Tree() != before {
			t.Error("the tree is another one")
		}
		var back *wire
		eventually(t, "the server takes its clients again", func() bool {
			back = dial(t, late)
			req := proto.ConnectRequest{TimeOut: 30000, SessionID: w.resp.SessionID, Passwd: w.resp.Passwd}
			back.write(proto.AppendFrame(nil, req.Append(nil)))
			frame, err := back.frame()
			if err != nil {
				return false // the transfer is still running
			}
			r := proto.NewReader(frame)
			back.resp.Decode(&r)
			return back.resp.SessionID == w.resp.SessionID
		})
		back.write(appendRequest(nil, proto.XidSetWatches, proto.OpSetWatches, &proto.SetWatches{
			RelativeZxid: seen, Data: []string{"/watched"}, Exist: []string{}, Child: []string{"/watched"}}))
		got, events := back.next()
		if got.Xid != proto.XidSetWatches || len(events) != 2 || events[0].Type != int32(proto.EventNodeDataChanged) ||
			events[1].Type != int32(proto.EventNodeChildrenChanged) {
			t.Errorf("%+v after the events %+v", got, events)
		}
		if data, _ := back.get("/watched", false); data != "99" {
			t.Errorf("the server has %q", data)
		}
	}, func(c *Config) { c.Log.SnapTrailing = 1 })
}
