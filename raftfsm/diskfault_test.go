package raftfsm

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// failing is a file system that fails once err is set: writes fail if it is ENOSPC, and
// otherwise fsyncs fail.
type failing struct {
	vfs.FS
	mu  sync.Mutex
	err error
}

func (f *failing) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failing) sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if errors.Is(f.err, syscall.ENOSPC) {
		return nil // only writes fail
	}
	return f.err
}

func (f *failing) write() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if errors.Is(f.err, syscall.ENOSPC) {
		return f.err
	}
	return nil
}

func (f *failing) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return failingFile{file, f}, nil
}

func (f *failing) SyncDir(name string) error { return errors.Join(f.sync(), f.FS.SyncDir(name)) }

func (f *failing) Commit(name string, run func() error) error {
	return errors.Join(f.FS.Commit(name, run), f.sync())
}

type failingFile struct {
	vfs.File
	f *failing
}

func (f failingFile) Write(b []byte) (int, error) {
	if err := f.f.write(); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f failingFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.f.write(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

func (f failingFile) Sync() error     { return errors.Join(f.f.sync(), f.File.Sync()) }
func (f failingFile) Datasync() error { return errors.Join(f.f.sync(), f.File.Datasync()) }

// TestLeaderLosesItsDisk: the leader's disk fails or is full. From then on the leader
// acknowledges no write, it reports the error, and another server becomes leader. After
// the disk is fixed, the server restarts and catches up.
func TestLeaderLosesItsDisk(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"fsync": syscall.EIO, "full": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3).onDisk()
				disks := make(map[uint64]*failing)
				for _, m := range c.list {
					disks[m.ID] = &failing{FS: vfs.OS{}}
					c.start(m.ID, func(cfg *Config) { cfg.FS = disks[m.ID] })
				}
				for _, r := range c.rigs {
					r.awaitServed()
				}
				lead, l := c.leader()
				ls := l.attach(time.Hour)
				_, f := c.follower()
				fs := f.attach(time.Hour)
				c.settled()
				disks[lead].set(fault)
				refused := make(chan outcome, 1)
				cmd := create(ls, "/refused", 0)
				cmd.Waiter = waiter(refused)
				_ = l.Propose(&cmd)
				select {
				case err := <-l.Err():
					if !errors.Is(err, fault) {
						t.Errorf("the server reports %v", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("the server says nothing of its disk")
				}
				disks[lead].set(nil) // from now on a retry would succeed
				if st := l.Status(); st.Serving || st.Role == Leader {
					t.Errorf("without a disk it is %+v", st)
				}
				before := time.Now()
				if o := c.sure(f, &fs, func(s session.Session) command.Command { return create(s, "/after", 0) }); o.code != proto.Ok {
					t.Fatalf("%+v", o)
				}
				if d := time.Since(before); d > 10*time.Second {
					t.Errorf("the others needed %v", d)
				}
				if l.exists("/after") || len(refused) > 0 {
					t.Error("a server goes on after its disk has failed")
				}
				c.kill(lead)
				r := c.start(lead)
				r.awaitServed()
				c.settled()
				if !r.exists("/after") {
					t.Error("it has not caught up")
				}
			})
		})
	}
}

// TestDamagedMember flips bits in the log of one stopped member while the others keep
// running. The member starts with the state that it had or not at all, and the damage
// doesn't reach the others.
func TestDamagedMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		const victim = 1
		_, r := c.leader()
		s := r.attach(time.Hour)
		for range 50 {
			r.do(create(s, "/n-", flagSequential))
		}
		c.settled()
		c.stop(victim)
		rnd := rand.New(rand.NewPCG(1, 2))
		intact := filepath.Join(c.disks, "intact")
		if err := os.CopyFS(intact, os.DirFS(c.dir(victim))); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for range cost.InShort(6, 20) {
			if err := os.RemoveAll(c.dir(victim)); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(c.dir(victim), os.DirFS(intact)); err != nil {
				t.Fatal(err)
			}
			flipOne(t, rnd, filepath.Join(c.dir(victim), "log"))
			rec := newRecorder()
			n, err := startNode(Config{ID: victim, Members: c.list, Peers: Peers{Network: c.net.Host(hostOf(victim))}, Handler: rec,
				TickTime: 200 * time.Millisecond, Log: Log{Dir: c.dir(victim) + "/log"}, DataDir: c.dir(victim) + "/snap"})
			if err != nil {
				refused++
				continue
			}
			started := &rig{Node: n, recorder: rec, t: t}
			started.awaitServed()
			c.rigs[victim] = started
			c.settled()
			c.stop(victim)
		}
		if refused == 0 {
			t.Error("no damage was noticed")
		}
		if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, "/end", 0) }); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.settled()
	})
}

// flipOne flips a bit in the used part of a file of the log.
func flipOne(t *testing.T, rnd *rand.Rand, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	var segments []string
	for _, f := range files {
		if strings.HasSuffix(f, ".seg") {
			segments = append(segments, f)
		}
	}
	path := segments[rnd.IntN(len(segments))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[rnd.IntN(len(bytes.TrimRight(b, "\x00")))] ^= 1 << rnd.IntN(8)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// unreadable are stores with unreadable entries. As in raftlog, a failed call never
// returns.
type unreadable struct {
	replica.Stores
	failed      chan error
	ended       chan struct{}
	fail, close sync.Once
}

type unreadableLog struct {
	raft.LogStore
	u *unreadable
}

func (u *unreadable) Logs() raft.LogStore  { return unreadableLog{u.Stores.Logs(), u} }
func (u *unreadable) Failed() <-chan error { return u.failed }
func (u *unreadable) Close() error {
	u.close.Do(func() { close(u.ended) })
	return u.Stores.Close()
}

func (l unreadableLog) GetLog(uint64, *raft.Log) error {
	l.u.fail.Do(func() { l.u.failed <- errInjected })
	<-l.u.ended
	runtime.Goexit()
	return nil
}

// If the log can't be read when Raft starts, the server reports the error and can be
// closed, whichever goroutine notices the failure of the stores first.
func TestUnreadableWhenRaftStarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3).onDisk()
	c.startAll()
	for id := uint64(1); id <= 3; id++ {
		c.stop(id)
	}
	for range 20 {
		r := c.start(1, func(cfg *Config) {
			cfg.open = func(cfg *replica.Config) (replica.Stores, error) {
				s, err := replica.OpenStores(cfg)
				return &unreadable{Stores: s, failed: make(chan error, 1), ended: make(chan struct{})}, err
			}
		})
		if err := <-r.Err(); !errors.Is(err, errInjected) {
			t.Errorf("ended with %v", err)
		}
		if !waitWithin(time.Minute, func() { _ = r.Close() }) {
			t.Fatal("it cannot be closed")
		}
	}
}

// stuck are stores that can't write votes and terms once begun is set. As in raftlog, a
// call waits for Close and then never returns.
type stuck struct {
	replica.Stores
	begun  atomic.Bool
	failed chan error
	ended  chan struct{}
	close  sync.Once
}

type stuckVotes struct {
	raft.StableStore
	s *stuck
}

func (s *stuck) Stable() raft.StableStore { return stuckVotes{s.Stores.Stable(), s} }
func (s *stuck) Failed() <-chan error     { return s.failed }
func (s *stuck) Close() error {
	s.close.Do(func() { close(s.ended) })
	return s.Stores.Close()
}

func (v stuckVotes) Set(key, value []byte) error {
	v.wait()
	return v.StableStore.Set(key, value)
}

func (v stuckVotes) SetUint64(key []byte, value uint64) error {
	v.wait()
	return v.StableStore.SetUint64(key, value)
}

func (v stuckVotes) wait() {
	if v.s.begun.Load() {
		<-v.s.ended
		runtime.Goexit()
	}
}

// TestCloseWhileTheDiskFails: Close returns although the disk hangs, or fails after the
// goroutine that watches for failures has ended, while Raft and the connection with a new
// leader's heartbeats wait for the disk.
func TestCloseWhileTheDiskFails(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"hangs": 2 * closeLimit, "fails": closeLimit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3)
				disk := &stuck{failed: make(chan error, 1), ended: make(chan struct{})}
				c.startAll(func(cfg *Config) {
					if cfg.ID == 3 {
						cfg.open = func(cfg *replica.Config) (replica.Stores, error) {
							s, err := replica.OpenStores(cfg)
							disk.Stores = s
							return disk, err
						}
					}
				})
				if lead, r := c.leader(); lead == 3 {
					_ = r.Transfer(t.Context())
					c.settled()
				}
				disk.begun.Store(true)
				_, r := c.leader()
				_ = r.Transfer(t.Context()) // a new term
				time.Sleep(3 * time.Second)
				if name == "fails" {
					time.AfterFunc(time.Second, func() { disk.failed <- errInjected })
				}
				began := time.Now()
				victim := c.rigs[3]
				delete(c.rigs, 3)
				err := victim.Node.Close()
				if took := time.Since(began); took > limit {
					t.Errorf("closed after %v", took)
				}
				if err == nil {
					t.Error("it says nothing")
				}
			})
		})
	}
}
