package powerloss

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/lossyfs"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

const (
	clients = 4
	writes  = 150 // by each client
)

func startServer(t *testing.T, dir, store string) *process.Server {
	t.Helper()
	// Write a snapshot every few writes, so that some cuts hit one.
	return process.Start(t, dir, "--set", "logStore="+store, "--set", "snapCount=60")
}

// TestServerKeepsItsWord runs a real server on a disk that loses data that was
// not fsynced. After a power cut at any point, every write that was acknowledged
// to a client must be there.
func TestServerKeepsItsWord(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a real server; not with -short")
	}
	t.Parallel()
	for _, store := range []string{"wal", "bolt"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			m := mount(t, lossyfs.Faults{})
			srv := startServer(t, filepath.Join(m.Dir, "data"), store)
			var wg sync.WaitGroup
			for c := range clients {
				wg.Go(func() {
					if err := write(srv.Addr, c, writes, func(path string) { m.Mark("acked " + path) }); err != nil {
						t.Errorf("client %d: %v", c, err)
					}
				})
			}
			wg.Wait()
			srv.Kill()
			ops := m.Journal()
			broken, acked, made := cutServer(t, ops, store, lossyfs.Faults{}, 5)
			for _, err := range broken {
				t.Error(err)
			}
			if acked == 0 {
				t.Fatal("nothing was acknowledged: this run shows nothing")
			}
			t.Logf("%d operations, %d cuts, %d writes acknowledged by the last", len(ops), made, acked)

			// The same run on a disk that ignores fsync must lose something.
			broken, _, made = cutServer(t, ops, store, lossyfs.Faults{IgnoreFsync: true}, 2)
			t.Logf("fsync ignored: %d of %d cuts detected", len(broken), made)
			if len(broken) == 0 {
				t.Error("a disk that ignores fsync went unnoticed")
			}
		})
	}
}

// write creates znodes one after the other and calls acked for each that the
// server acknowledged.
func write(addr string, client, n int, acked func(path string)) error {
	c, err := process.Connect(addr, 0, nil, process.Patience)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		path := fmt.Sprintf("/c%d-%d", client, i)
		if err := c.Create(path, znodeData(path), proto.ModePersistent); err != nil {
			return fmt.Errorf("create %s: %w", path, err)
		}
		acked(path)
	}
	return nil
}

func znodeData(path string) []byte { return bytes.Repeat([]byte(path), 1+len(path)%40) }

// cutServer cuts the power at points spread over a run, starts a server on the remaining files each
// time, and asks for every acknowledged write.
func cutServer(t *testing.T, ops []lossyfs.Op, store string, f lossyfs.Faults, few int) (broken []error, nacked, made int) {
	t.Helper()
	player := lossyfs.Replay(ops, f)
	dir := imageDir(t)
	var acked []string
	made = cuts(len(ops), few)
	for i, at := range moments(ops, made) {
		must.Do(t, player.Advance(at))
		acked = ackedBy(ops[:at])
		var luck *rand.Rand
		if i%2 == 1 {
			luck = rand.New(rand.NewPCG(uint64(at), 7))
		}
		image := filepath.Join(dir, fmt.Sprint(at))
		must.Do(t, player.Export(image, luck))
		if err := holds(t, filepath.Join(image, "data"), store, acked); err != nil {
			broken = append(broken, fmt.Errorf("cut after operation %d of %d: %w", at, len(ops), err))
		}
		os.RemoveAll(image)
	}
	return broken, len(acked), made
}

// moments returns n operation counts, evenly spread, up to len(ops).
func moments(ops []lossyfs.Op, n int) []int {
	var at []int
	for i := range n {
		at = append(at, (i+1)*len(ops)/n)
	}
	return at
}

func ackedBy(ops []lossyfs.Op) []string {
	var paths []string
	for _, op := range ops {
		if path, ok := strings.CutPrefix(string(op.Data), "acked "); ok && op.Kind == lossyfs.Mark {
			paths = append(paths, path)
		}
	}
	return paths
}

// holds starts a server on a data directory and looks for znodes.
func holds(t *testing.T, dir, store string, paths []string) error {
	t.Helper()
	srv, err := process.Try(process.Binary(t), dir, "--set", "logStore="+store)
	if err != nil {
		return err
	}
	defer srv.Kill()
	c, err := process.Connect(srv.Addr, 0, nil, process.Patience)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, srv.Output())
	}
	defer c.Close()
	for _, path := range paths {
		data, _, err := c.Get(path)
		if err != nil {
			return fmt.Errorf("get %s, which was acknowledged: %w", path, err)
		}
		if !bytes.Equal(data, znodeData(path)) {
			return fmt.Errorf("%s holds other data than was acknowledged", path)
		}
	}
	return nil
}

// TestServerEndsWithItsDisk checks that the server ends by itself when its disk
// is gone, and acknowledges nothing in the meantime.
func TestServerEndsWithItsDisk(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"wal", "bolt"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			m := mount(t, lossyfs.Faults{})
			srv := startServer(t, filepath.Join(m.Dir, "data"), store)
			var mu sync.Mutex
			var acked []string
			err := write(srv.Addr, 0, 1<<20, func(path string) {
				mu.Lock()
				defer mu.Unlock()
				m.Mark("acked " + path) // fails once the disk is gone
				acked = append(acked, path)
				if len(acked) == 50 {
					m.Cut()
				}
			})
			if err == nil {
				t.Fatal("the server went on without a disk")
			}
			select {
			case <-srv.Done():
			case <-time.After(process.Patience):
				t.Fatalf("the server still runs without a disk:\n%s", srv.Output())
			}
			if n := len(ackedBy(m.Journal())); n != 50 || len(acked) != n {
				t.Errorf("%d writes acknowledged, %d of them while there was a disk", len(acked), n)
			}
			image := filepath.Join(imageDir(t), "image")
			must.Do(t, m.Export(image, nil))
			if err := holds(t, filepath.Join(image, "data"), store, acked); err != nil {
				t.Error(err)
			}
		})
	}
}
