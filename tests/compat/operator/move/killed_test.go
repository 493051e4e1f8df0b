package move

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// TestKilledUnderLoad kills a ZooKeeper while clients write, and compares the state that
// zkgo imports from its files with the state that ZooKeeper has after a restart.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	need(t)
	zk := oracle.Start(t, options("snapCount=150"))
	var wg sync.WaitGroup
	var steps atomic.Int64
	reached := make(chan struct{})
	var clients []*client.Client
	for w := range 4 {
		c := connect(t, zk.Addr())
		clients = append(clients, c)
		base := fmt.Sprint("/w", w)
		must.Get(c.Create(ctx(t), base, nil))(t)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 9))
			for n := 0; step(t, c, r, base, n) == nil; n++ { // until the server is killed
				if steps.Add(1) == 1000 {
					close(reached)
				}
			}
		})
	}
	select {
	case <-reached:
	case <-ctx(t).Done():
		t.Error("the clients come to nothing")
	}
	zk.Stop()
	for _, c := range clients {
		_ = c.Close() // otherwise it would wait for another server
	}
	wg.Wait()
	copied := t.TempDir()
	must.Do(t, os.CopyFS(copied, os.DirFS(dataDir(zk))))
	must.Do(t, zk.Run())
	want := picture(t, reader(t, zk.Addr()))
	data, r := imported(t, zkfiles.Source{Data: dir(copied)})
	if !r.Verified || r.Sessions != 4 {
		t.Errorf("%d sessions, %+v", r.Sessions, *r.Report)
	}
	here := freeAddr(t)
	start(t, data, here)
	same(t, "imported", picture(t, reader(t, here)), want)
	t.Logf("%s and %d transactions, %d digests compared, %d znodes", r.Snapshot, r.Transactions, r.Compared, r.Znodes)
}
