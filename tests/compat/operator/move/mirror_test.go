package move

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// mirrorLib names a directory with the jars of another release to follow.
var mirrorLib = flag.String("mirror", "", "`release=directory` with the jars of the ensemble that TestMirror follows")

// TestMirror follows a real ensemble under load across broken connections and the death of
// its leader, and compares the result with what the ensemble's clients see.
func TestMirror(t *testing.T) {
	t.Parallel()
	need(t)
	release, lib, _ := strings.Cut(*mirrorLib, "=")
	o := options()
	o.Lib = lib
	servers := oracle.Ensemble(t, 3, o)
	admin := gozk(t, servers[0].Addr())
	write(t, admin, gozk(t, servers[0].Addr()), !strings.HasPrefix(release, "3.4"))
	load := startLoad(t, servers)

	m := follow(t, learner.Config{Addrs: quorumAddrs(t, servers[0]), ID: 200})
	m.exact(t, 1)
	for connections := int64(2); connections <= 3; connections++ {
		at := m.replica.Status().Zxid
		wait.Eventually(t, "the load to go on", func() bool { return m.replica.Status().Zxid > at+50 })
		m.cut()
		m.exact(t, connections)
	}
	leader := leaderOf(t, servers)
	leader.Stop()
	m.exact(t, 4)
	must.Do(t, leader.Run())
	load()

	leader = leaderOf(t, servers)
	c := gozk(t, leader.Addr())
	must.Get(c.Sync("/"))(t)
	must.Do(t, wait.Success(patience, "the mirror to be where the leader is", func() error {
		want, err := process.Ask(leader.Addr(), time.Second)
		if got := m.replica.Status().Zxid; err == nil && got != want.Zxid {
			return fmt.Errorf("the mirror is at %#x, the leader at %#x", got, want.Zxid)
		}
		return err
	}))
	var want strings.Builder
	show(t, c, "/", &want)
	m.stop()
	status := m.replica.Status()
	t.Logf("%+v", status)
	if status.Compared == 0 && !strings.HasPrefix(release, "3.4") && !strings.HasPrefix(release, "3.5") {
		t.Error("no digest was compared")
	}
	state := must.Get(m.replica.Take())(t)
	dir, addr := t.TempDir(), freeAddr(t)
	must.Get(migrate.Plant(config(dir, addr), state, 0))(t)
	start(t, dir, addr)
	var got strings.Builder
	show(t, gozk(t, addr), "/", &got)
	same(t, "mirror", byPath(got.String(), release), byPath(want.String(), release))
}

// byPath returns the lines of show by their paths. ZooKeeper 3.4 has no /zookeeper/config,
// so the znode above it differs.
func byPath(shown, release string) map[string]string {
	lines := make(map[string]string)
	for line := range strings.Lines(shown) {
		path, rest, _ := strings.Cut(line, " ")
		if path != `"/zookeeper"` || !strings.HasPrefix(release, "3.4") {
			lines[path] = rest
		}
	}
	return lines
}

// following is a mirror that reconnects by itself.
type following struct {
	replica mirror.Replica
	stop    func()

	mu     sync.Mutex
	conn   *learner.Conn
	exacts int64 // connections whose state became exact
	errs   []error
}

// countingReplica counts the connections on which the state became exact.
type countingReplica struct {
	*mirror.Replica
	f *following
}

func (c countingReplica) Synced() error {
	c.f.mu.Lock()
	c.f.exacts++
	c.f.mu.Unlock()
	return c.Replica.Synced()
}

func follow(t *testing.T, cfg learner.Config) *following {
	t.Helper()
	f := new(following)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			err := f.once(ctx, cfg)
			f.mu.Lock()
			f.errs = append(f.errs, err)
			f.mu.Unlock()
			if errors.Is(err, mirror.ErrDigest) || errors.Is(err, learner.ErrTrunc) {
				t.Error(err)
				return
			}
			select { // the ensemble may have no leader
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	f.stop = func() {
		cancel()
		f.cut()
		done.Wait()
	}
	t.Cleanup(f.stop)
	return f
}

func (f *following) once(ctx context.Context, cfg learner.Config) error {
	zxid := f.replica.Zxid()
	c, err := learner.Dial(ctx, cfg, zxid)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.conn = c
	f.mu.Unlock()
	return errors.Join(c.Follow(zxid, countingReplica{&f.replica, f}), c.Close())
}

// cut closes the connection.
func (f *following) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		_ = f.conn.Close()
	}
}

// exact waits until the state is exact on n connections.
func (f *following) exact(t *testing.T, n int64) {
	t.Helper()
	must.Do(t, wait.Success(patience, "an exact state", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.exacts < n {
			return fmt.Errorf("exact on %d of %d connections: %v", f.exacts, n, errors.Join(f.errs...))
		}
		return nil
	}))
}

// leaderOf waits for the leader.
func leaderOf(t *testing.T, servers []*oracle.Server) (leader *oracle.Server) {
	t.Helper()
	wait.Eventually(t, "a leader", func() bool {
		for _, s := range servers {
			if status, err := process.Ask(s.Addr(), time.Second); err == nil && status.Mode == "leader" {
				leader = s
			}
		}
		return leader != nil
	})
	return leader
}

// startLoad makes clients write all kinds of changes until the result is called.
func startLoad(t *testing.T, servers []*oracle.Server) (stop func()) {
	t.Helper()
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for w := range 4 {
		c, r := gozk(t, servers[w%len(servers)].Addr(), servers[(w+1)%len(servers)].Addr()), rand.New(rand.NewPCG(uint64(w), 11))
		done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				change(c, r, fmt.Sprint("/load", w), n)
			}
		})
	}
	return func() { cancel(); done.Wait() }
}

// change makes one change. It may fail: what counts is what the ensemble has done.
func change(c *zk.Conn, r *rand.Rand, base string, n int) {
	all := zk.WorldACL(zk.PermAll)
	path := fmt.Sprintf("%s/%d", base, r.IntN(30))
	child := fmt.Sprintf("%s/%d", path, r.IntN(5))
	data := []byte(strings.Repeat("x", r.IntN(2000)))
	switch r.IntN(10) {
	case 0:
		_, _ = c.Create(base, data, 0, all)
	case 1:
		_, _ = c.Create(path, data, 0, all)
	case 2:
		_, _ = c.Create(child, nil, 0, all)
	case 3:
		_, _ = c.Create(child, data, zk.FlagEphemeral, all)
	case 4:
		_, _ = c.Create(path+"/s-", data, zk.FlagSequence, all)
	case 5:
		_, _ = c.Set(path, data, -1)
	case 6:
		_ = c.Delete(child, -1)
	case 7:
		_ = c.Delete(path, -1)
	case 8:
		_, _ = c.SetACL(path, append(zk.WorldACL(zk.PermAll), zk.ACL{Perms: 1, Scheme: "digest", ID: fmt.Sprintf("u%d:x=", n%7)}), -1)
	case 9:
		_, _ = c.Multi(&zk.CreateRequest{Path: child, Data: data, Acl: all}, &zk.SetDataRequest{Path: path, Data: data, Version: -1}, &zk.DeleteRequest{Path: child, Version: -1})
	}
}

// gozk returns a client that works with every release and may read everything.
func gozk(t *testing.T, addrs ...string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(addrs, 10*time.Minute, zk.WithLogInfo(false))
	must.Do(t, err)
	t.Cleanup(c.Close)
	must.Do(t, c.AddAuth("digest", []byte("super:secret")))
	return c
}

// quorumAddrs returns the quorum addresses in a server's zoo.cfg.
func quorumAddrs(t *testing.T, s *oracle.Server) (addrs []string) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(s.Dir, "zoo.cfg")))(t)
	for _, m := range regexp.MustCompile(`(?m)^server\.\d+=([^:]+:\d+)`).FindAllSubmatch(text, -1) {
		addrs = append(addrs, string(m[1]))
	}
	return addrs
}
