package zktest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/server/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits how long a test waits for an expected event.
const patience = 60 * time.Second

// quiet is a logger that drops all messages.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect connects go-zookeeper without a socket and waits for its session.
func connect(t testing.TB, zs *zktest.Server) *zk.Conn {
	t.Helper()
	c, _ := dial(t, []string{"127.0.0.1"}, zs.Dialer())
	return c
}

// dial connects go-zookeeper and waits for its session.
func dial(t testing.TB, addrs []string, dialer zk.Dialer) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	c, events, err := zk.Connect(addrs, 30*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(dialer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	awaitState(t, events, zk.StateHasSession)
	return c, events
}

// create creates a znode with go-zookeeper.
func create(t testing.TB, c *zk.Conn, path, data string, flags int32) {
	t.Helper()
	if _, err := c.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

// awaitState reads events until the state is want.
func awaitState(t testing.TB, events <-chan zk.Event, want zk.State) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case e := <-events:
			if e.State == want {
				return
			}
		case <-limit.C:
			t.Fatalf("no %v within %v", want, patience)
		}
	}
}
