package exchange

import (
	"log/slog"
	network "net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

// TestSlowAnswer: an answer may need any time while the other server reports
// that it is working. If the network forgets the connection, the question fails.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := quorum.NewMemory()
		hub := func(id string) *quorum.Hub {
			self := quorum.Identity{ServerID: id, Cluster: quorum.ClusterID{1}}
			h, err := quorum.Listen(net.Host("s"+id), "s"+id+":2888", self, quorum.Security{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		asker, asked := hub("1"), hub("2")
		defer asker.Close()
		defer asked.Close()
		asked.Handle(quorum.Change, func(conn network.Conn, from quorum.Identity) {
			Respond(conn, from.Beats, func(q *string) any {
				time.Sleep(30 * time.Second)
				return *q + "!"
			})
		})
		ask := func() (answer string, err error) {
			conn, _, err := asker.Dial(t.Context(), quorum.Change, "s2:2888", "2")
			if err == nil {
				err = Ask(t.Context(), conn, "q", &answer)
			}
			return answer, err
		}
		if a, err := ask(); err != nil || a != "q!" {
			t.Errorf("%q, %v", a, err)
		}
		time.AfterFunc(5*time.Second, func() { net.Forget(func(string, string) bool { return true }) })
		began := time.Now()
		if _, err := ask(); err == nil || time.Since(began) > 5*time.Second+Timeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(time.Minute)
	})
}
