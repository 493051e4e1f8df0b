package move

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tree"
)

// TestFuzzySnapshots makes a ZooKeeper write snapshots all the time while clients write, and starts
// from each snapshot. All should lead to the same state, which should match the server's output and
// its digest.
func TestFuzzySnapshots(t *testing.T) {
	t.Parallel()
	need(t)
	for compression, rounds := range map[zkfiles.Compression]int{zkfiles.None: 300, zkfiles.Gzip: 120, zkfiles.Snappy: 120} {
		t.Run("plain"+compression.Extension(), func(t *testing.T) {
			t.Parallel()
			o := options("snapCount=100", "preAllocSize=64")
			o.JVM = append(o.JVM, "-Dzookeeper.snapshot.compression.method="+string(compression))
			zk := oracle.Start(t, o)
			c := connect(t, zk.Addr())
			everyKind(t, c)
			work(t, zk.Addr(), rounds)
			want := picture(t, reader(t, zk.Addr()))
			zk.Stop()
			compareAll(t, dataDir(zk), compression, want)
		})
	}
}

// compareAll loads the directory once for every snapshot in it, and serves the last state.
func compareAll(t *testing.T, data string, compression zkfiles.Compression, want map[string]string) {
	var first string
	fuzzy := 0
	zxids := snapshots(t, data)
	for i, zxid := range zxids {
		d := zkfiles.Dir{FS: until{os.DirFS(data), zxid}, Name: data}
		state, r, err := zkfiles.Load(zkfiles.Source{Data: d})
		if err != nil {
			t.Errorf("from snapshot %x: %v", zxid, err)
			continue
		}
		if r.Info.Digest != nil && r.Info.Digest.Zxid > zxid {
			fuzzy++
		}
		if !r.Verified || r.Different > 0 || len(r.Warnings) > 0 || !strings.HasSuffix(r.Snapshot, fmt.Sprintf("snapshot.%x%s", zxid, compression.Extension())) && zxid > 0 {
			t.Errorf("from snapshot %x: %+v", zxid, *r)
		}
		tr, sessions := tree.New(), session.NewTable()
		if err := state.Fill(tr, sessions); err != nil {
			t.Errorf("from snapshot %x: %v", zxid, err)
			continue
		}
		var b strings.Builder
		if err := errors.Join(tr.Dump(&b), tr.Check()); err != nil {
			t.Error(err)
		}
		for row := range sessions.All {
			fmt.Fprintf(&b, "%x %d\n", row.ID, row.Timeout)
		}
		if first == "" {
			first = b.String()
		}
		if b.String() != first {
			t.Errorf("from snapshot %x comes another state than from the first", zxid)
		}
		if i == len(zxids)-1 {
			t.Logf("%d snapshots, %d of them fuzzy; from the last one %d transactions, %d digests compared; %d znodes", len(zxids), fuzzy, r.Transactions, r.Compared, tr.NodeCount())
		}
	}
	if len(zxids) < 3 {
		t.Errorf("%d snapshots: this test has tested nothing", len(zxids))
	}
	here := freeAddr(t)
	moved, _ := imported(t, zkfiles.Source{Data: dir(data)})
	stop, _ := start(t, moved, here)
	same(t, "imported", picture(t, reader(t, here)), want)
	stop()
}

// work makes several clients write all kinds of changes.
func work(t *testing.T, addr string, rounds int) {
	t.Helper()
	const workers = 6
	var wg sync.WaitGroup
	for w := range workers {
		c := connect(t, addr)
		r := rand.New(rand.NewPCG(uint64(w), 7))
		must.Get(c.Create(ctx(t), fmt.Sprint("/w", w), nil))(t)
		wg.Go(func() {
			for n := range rounds {
				if err := step(t, c, r, fmt.Sprint("/w", w), n); err != nil {
					t.Error(err)
					return
				}
				if n%50 == 49 { // deletes its ephemeral znodes
					_ = c.Close()
					c = connect(t, addr)
				}
			}
		})
	}
	wg.Wait()
}

// step makes one change. A missing or existing znode is no failure.
func step(t *testing.T, c *client.Client, r *rand.Rand, base string, n int) error {
	path := fmt.Sprintf("%s/%d", base, r.IntN(40))
	child := fmt.Sprintf("%s/%d", path, r.IntN(6))
	data := []byte(strings.Repeat("x", r.IntN(3000)))
	var err error
	create := func(path string, opts ...client.CreateOption) { _, err = c.Create(ctx(t), path, data, opts...) }
	switch r.IntN(12) {
	case 0, 1:
		create(path)
	case 2, 3:
		create(child)
	case 4:
		create(child, client.Ephemeral)
	case 5:
		create(path+"/s-", client.Sequential)
	case 6:
		create(path, client.Container)
	case 7:
		_, err = c.Set(ctx(t), path, data, -1)
	case 8:
		err = c.DeleteAll(ctx(t), path) // and all descendants, so that a parent starts over
	case 9:
		_, err = c.SetACL(ctx(t), path, []client.ACL{{Perms: 31, ID: client.ID{Scheme: "world", ID: "anyone"}}, {Perms: 1, ID: client.ID{Scheme: "digest", ID: fmt.Sprintf("u%d:x=", n)}}}, -1)
	case 10:
		_, err = c.Multi(ctx(t), client.CreateOp(path+"/m-", data, client.Sequential), client.CreateOp(path+"/e-", nil, client.Sequential, client.Ephemeral), client.SetOp(path, data, -1))
	case 11:
		_, err = c.Multi(ctx(t), client.DeleteOp(child, -1), client.CreateOp(child, data, client.WithTTL(time.Hour)))
	}
	for _, fine := range []error{client.ErrNoNode, client.ErrNodeExists, client.ErrNotEmpty, client.ErrNoChildrenForEphemerals} {
		if errors.Is(err, fine) {
			return nil
		}
	}
	return err
}

// snapshots returns the zxids of a directory's snapshots, oldest first.
func snapshots(t *testing.T, data string) (zxids []int64) {
	t.Helper()
	entries := must.Get(os.ReadDir(filepath.Join(data, "version-2")))(t)
	for _, e := range entries {
		if zxid := snapshotZxid(e.Name()); zxid >= 0 {
			zxids = append(zxids, zxid)
		}
	}
	return zxids
}

func snapshotZxid(name string) int64 {
	parts := strings.Split(name, ".")
	if parts[0] != "snapshot" {
		return -1
	}
	zxid, err := strconv.ParseInt(parts[1], 16, 64)
	if err != nil {
		return -1
	}
	return zxid
}

// until is a directory without the snapshots written after zxid.
type until struct {
	fs.FS
	zxid int64
}

// ReadDir hides the later snapshots.
func (u until) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(u.FS, name)
	var left []fs.DirEntry
	for _, e := range all {
		if snapshotZxid(e.Name()) <= u.zxid {
			left = append(left, e)
		}
	}
	return left, err
}

// Sub hides them in subdirectories too.
func (u until) Sub(name string) (fs.FS, error) {
	sub, err := fs.Sub(u.FS, name)
	return until{sub, u.zxid}, err
}
