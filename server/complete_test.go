package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// taker is a client that accepts all output.
type taker struct{ got []byte }

func (k *taker) TryWrite(b []byte) (int, error) {
	k.got = append(k.got, b...)
	return len(b), nil
}

// TestAnswersOfAnEntry: the clients of one log entry are answered together, when the whole
// entry is applied.
func TestAnswersOfAnEntry(t *testing.T) {
	t.Parallel()
	for _, clients := range []int{1, fewDirty, fewDirty + 1, 4 * fewDirty} {
		s := startServer(t)
		takers, applied := make([]taker, clients), make(chan int)
		apply := func(*raftfsm.Applied) {
			early := 0
			for i := range takers {
				conn := newConn(s, nil)
				conn.try = &takers[i]
				p := s.pools.newPending(conn, proto.OpSetData, int32(i+1))
				p.inFlight = true
				conn.replies.push(p)
				handler{s}.Applied(&raftfsm.Applied{Kind: raftfsm.KindRequest, Op: proto.OpSetData, Code: proto.ErrNoNode, Body: make([]byte, 8<<10), Waiter: p})
			}
			for i := range takers {
				early += len(takers[i].got)
			}
			handler{s}.BatchDone()
			s.outstanding.Store(0)
			applied <- early
		}
		if err := s.node.Propose(&raftfsm.Command{Kind: raftfsm.KindSync, Waiter: apply}); err != nil {
			t.Fatal(err)
		}
		if early := <-applied; early != 0 {
			t.Errorf("%d clients: %d bytes were written before the entry was applied", clients, early)
		}
		if sent := s.stats.Sent.Load(); sent != int64(clients) {
			t.Errorf("%d clients: %d answers are counted", clients, sent)
		}
	}
}
