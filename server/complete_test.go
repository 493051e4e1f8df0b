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

// Clients that wait for nothing else are answered before the entry is done, if there
// are many and its commands are long. Clients that wait for more are answered with the
// rest.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		clients int // waiting clients
		more    int // clients that wait for more
		bytes   int // of each command
		want    int // clients answered before the entry is done
	}{
		"many, long commands": {earlyAnswers + 3, 0, earlyBytes / 8, earlyAnswers},
		"few":                 {earlyAnswers - 1, 0, earlyBytes, 0},
		"short commands":      {earlyAnswers + 3, 0, 100, 0},
		"short ones at first": {earlyAnswers + 3, 0, earlyBytes/(earlyAnswers+1) + 1, earlyAnswers + 1},
		"most wait for more":  {2 * earlyAnswers, earlyAnswers + 3, earlyBytes / 8, 0},
		"one waits for more":  {earlyAnswers + 3, 1, earlyBytes / 8, earlyAnswers + 1},
		"as many once again":  {2*earlyAnswers + 3, 0, earlyBytes / 8, 2 * earlyAnswers},
		"the last one":        {earlyAnswers, 0, earlyBytes / 8, earlyAnswers},
	} {
		s := startServer(t)
		clients, early := make([]taker, c.clients), make(chan int)
		apply := func(*raftfsm.Applied) {
			answered := 0
			for i := range clients {
				conn := &conn{s: s, try: &clients[i]}
				p := s.newPending(conn, proto.OpSetData, int32(i+1))
				p.inFlight = true
				conn.push(p)
				if i < c.more {
					q := s.newPending(conn, proto.OpSetData, int32(i+1))
					q.inFlight = true
					conn.push(q)
				}
				handler{s}.Applied(&raftfsm.Applied{Kind: raftfsm.KindRequest, Op: proto.OpSetData, Code: proto.ErrNoNode, Body: make([]byte, c.bytes), Waiter: p})
			}
			for i := range clients {
				answered += min(len(clients[i].got), 1)
			}
			early <- answered
			handler{s}.BatchDone()
			s.outstanding.Store(0)
			early <- 0
		}
		if err := s.node.Propose(&raftfsm.Command{Kind: raftfsm.KindSync, Waiter: apply}); err != nil {
			t.Fatal(err)
		}
		if got := <-early; got != c.want {
			t.Errorf("%s: %d are answered before the entry is done, want %d", name, got, c.want)
		}
		<-early
		if sent := s.stats.sent.Load(); sent != int64(c.clients) {
			t.Errorf("%s: %d answers are counted, want %d", name, sent, c.clients)
		}
	}
}
