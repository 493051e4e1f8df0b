package takeover

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestNothingWritten: an ensemble in which nothing was ever written sends no state. The mirror
// begins with an empty one, and does not wait for the first write.
func TestNothingWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		dial := func(context.Context, string, string) (net.Conn, error) { return here, nil }
		m := New(Config{Learner: learner.Config{Addrs: []string{"zk1:2888"}, Dial: dial}, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		g, ended := newTarget(), make(chan error, 1)
		go func() { ended <- m.once(ctx, g) }()
		r := bufio.NewReader(there)
		for _, answers := range [][]zab.Packet{
			{{Kind: zab.KindLeaderInfo, Zxid: 1 << 32, Data: proto.AppendInt(nil, zab.ProtocolVersion)}}, // to OBSERVERINFO
			{{Kind: zab.KindDiff}, {Kind: zab.KindNewLeader, Zxid: 1 << 32}},                             // to ACKEPOCH
			{{Kind: zab.KindUpToDate}}, // to ACK
			nil,                        // to ACK
		} {
			must.Get(zab.ReadPacket(r, 1<<20))(t)
			for _, p := range answers {
				must.Get(there.Write(zab.AppendPacket(nil, p)))(t)
			}
		}
		synctest.Wait()
		if got := g.got(); !slices.Contains(got, "begin 0x0 with 5 znodes, 0 sessions") {
			t.Errorf("%q", got)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
