package server

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// option sends an auth packet that sets an option.
func (w *wire) option(what string) proto.Code {
	w.t.Helper()
	w.write(appendRequest(nil, proto.XidAuth, proto.OpAuth, &proto.AuthPacket{Scheme: "zkgo", Auth: []byte(what)}))
	got := w.recv()
	if got.Xid != proto.XidAuth {
		w.t.Fatalf("reply to xid %d, want the reply to auth", got.Xid)
	}
	return got.Err
}

func (w *wire) linearizable() *wire {
	w.t.Helper()
	if code := w.option("reads=linearizable"); code != proto.Ok {
		w.t.Fatal(code)
	}
	return w
}

// hosts returns the hosts of some servers.
func hosts(ss ...*Server) (names []string) {
	for _, s := range ss {
		names = append(names, host(int(s.cfg.Quorum.ID)))
	}
	return names
}

// A replaced leader that doesn't know it answers reads from its own state for a while,
// but no linearizable reads.
func TestADeposedLeaderAnswersNoLinearizableRead(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		seq, lin := connect(t, leader), connect(t, leader).linearizable()
		seq.create("/r", []byte("old"), proto.ModePersistent)
		if data, _ := lin.get("/r", false); data != "old" {
			t.Errorf("read %q", data)
		}
		e.net.Partition(hosts(leader), hosts(others...))
		lin.send(proto.OpGetData, &proto.GetDataRequest{Path: "/r"})
		eventually(t, "another leader", func() bool {
			st := others[0].Node().Status()
			return st.Serving && st.Leader != leader.cfg.Quorum.ID
		})
		connect(t, others[0]).set("/r", "new")
		if data, _ := seq.get("/r", false); data != "old" {
			t.Errorf("the deposed leader knows %q: nothing was tested", data)
		}
		e.net.Rejoin(hosts(leader), hosts(others...))
		if frame, err := lin.frame(); err == nil {
			var resp proto.GetDataResponse
			if lin.decode(decodeReply(t, frame), &resp); string(resp.Data) != "new" {
				t.Errorf("read %q after another client had read a newer value", resp.Data)
			}
		}
	})
}

// A follower that learns of commits late asks the leader first.
func TestLinearizableReadsOnALateFollower(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		a := connect(t, others[0])
		a.create("/r", nil, proto.ModePersistent)
		b := connect(t, others[1]).linearizable()
		seq := connect(t, others[1])
		e.net.Delay(host(int(leader.cfg.Quorum.ID)), host(int(others[1].cfg.Quorum.ID)), 100*time.Millisecond)
		stale := 0
		for i := range 20 {
			a.set("/r", strconv.Itoa(i))
			if data, _ := seq.get("/r", false); data != strconv.Itoa(i) {
				stale++
			}
			if data, _ := b.get("/r", false); data != strconv.Itoa(i) {
				t.Fatalf("read %q, want %d", data, i)
			}
		}
		if stale == 0 {
			t.Error("no read was out of date: nothing was tested")
		}
	})
}

// A client's requests keep their order, even if some have to wait.
func TestLinearizableReadsKeepTheirPlace(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		for i, s := range e.servers {
			w := connect(t, s)
			path := "/own" + strconv.Itoa(i)
			w.create(path, nil, proto.ModePersistent)
			const rounds = 100
			var b []byte
			for i := range int32(rounds) {
				b = appendRequest(b, 2*i+1, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: strconv.AppendInt(nil, int64(i), 10), Version: -1})
				b = appendRequest(b, 2*i+2, proto.OpGetData, &proto.GetDataRequest{Path: path})
			}
			go func() {
				for len(b) > 0 { // in pieces, so that the reader often has to wait
					n := min(len(b), 64)
					w.nc.Write(b[:n])
					b = b[n:]
				}
			}()
			for i := range int32(rounds) {
				set, get := w.recv(), w.recv()
				var resp proto.GetDataResponse
				w.decode(get, &resp)
				if set.Xid != 2*i+1 || get.Xid != 2*i+2 || string(resp.Data) != strconv.Itoa(int(i)) {
					t.Fatalf("round %d: %+v, then %q %+v", i, set.ReplyHeader, resp.Data, get.ReplyHeader)
				}
			}
		}
	}, func(c *Config) { c.LinearizableReads = true })
}

// A waiting read changes nothing, so it may wait for the next leader: its client keeps
// its connection.
func TestALinearizableReadOutlivesTheLeader(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		w := connect(t, others[0]).linearizable()
		w.create("/r", []byte("x"), proto.ModePersistent)
		e.net.Partition(hosts(leader), hosts(others...))
		xid := w.send(proto.OpGetData, &proto.GetDataRequest{Path: "/r"})
		if got := w.recv(); got.Xid != xid || got.Err != proto.Ok {
			t.Errorf("%+v", got.ReplyHeader)
		}
		// The reply and the news of the leader take different paths. No election can
		// happen while they arrive, because no time passes here.
		synctest.Wait()
		if st := others[0].Node().Status(); st.Leader == leader.cfg.Quorum.ID {
			t.Errorf("answered under the leader that was cut off: %+v", st)
		}
	})
}

// An option is not an identity, and the server refuses an unknown option.
func TestLinearizableOptionIsNotAnIdentity(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	before := w.identities()
	w.linearizable()
	if got := w.identities(); got != before {
		t.Errorf("identities %q, were %q", got, before)
	}
	if _, st := w.get("/", false); st.NumChildren == 0 {
		t.Error("no answer")
	}
	if code := w.option("reads=sequential"); code != proto.Ok {
		t.Error(code)
	}
	for _, what := range []string{"", "reads=fast", "reads=linearizable "} {
		w := connect(t, s)
		if code := w.option(what); code != proto.ErrAuthFailed {
			t.Errorf("%q: %v", what, code)
		}
		w.wantClosed()
	}
}
