package raftfsm

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

// stalling is a file system on which no write becomes durable for a while, or every write
// is slow.
type stalling struct {
	vfs.FS
	mu    sync.Mutex
	gate  chan struct{} // writes wait for it to become durable
	pause time.Duration // duration of writes to log segments
}

func (s *stalling) stall() (release func()) {
	gate := make(chan struct{})
	s.mu.Lock()
	s.gate = gate
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.gate = nil
		s.mu.Unlock()
		close(gate)
	}
}

func (s *stalling) slow(pause time.Duration) {
	s.mu.Lock()
	s.pause = pause
	s.mu.Unlock()
}

func (s *stalling) wait(name string) {
	s.mu.Lock()
	gate, pause := s.gate, s.pause
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if pause > 0 && strings.HasSuffix(name, ".seg") {
		time.Sleep(pause)
	}
}

func (s *stalling) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return stallingFile{f, s, name}, nil
}

func (s *stalling) SyncDir(name string) error {
	s.wait(name)
	return s.FS.SyncDir(name)
}

func (s *stalling) Commit(name string, f func() error) error {
	s.wait(name)
	return s.FS.Commit(name, f)
}

type stallingFile struct {
	vfs.File
	s    *stalling
	name string
}

func (f stallingFile) Sync() error {
	f.s.wait(f.name)
	return f.File.Sync()
}

func (f stallingFile) Datasync() error {
	f.s.wait(f.name)
	return f.File.Datasync()
}

// stallingCluster starts an ensemble on stalling disks.
func stallingCluster(t *testing.T, n int) (*cluster, map[uint64]*stalling) {
	t.Helper()
	c := newCluster(t, n).onDisk()
	disks := make(map[uint64]*stalling)
	for _, m := range c.list {
		disks[m.ID] = &stalling{FS: vfs.OS{}}
		c.start(m.ID, func(cfg *Config) { cfg.FS = disks[m.ID] })
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	// Soon after its election, a leader raises the level with a separate entry. If a disk
	// stalled while only some servers had that entry, the stall would affect the wrong
	// servers.
	c.awaitLevel(command.Level)
	c.settled()
	return c, disks
}

// TestStalledDisks stalls the leader's disk, or all disks at once, while clients write.
// A leader with a short stall keeps its leadership. A leader with a long stall loses it
// to a server with a working disk. If no disk works, no server can win, and there are
// no repeated elections. The service is back soon after the stall.
//
// Every one to two election timeouts, a follower checks whether it has heard from its
// leader within the last one. So both followers have noticed the silence after at most
// three election timeouts, and the later one is elected. If their disks hang, too, so
// do the followers, in the entry that a leader sends while it writes it. Whether a
// follower or the leader speaks first after that is chance, and either is right.
func TestStalledDisks(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		for _, tt := range []struct {
			stall       time.Duration
			least, most uint64 // terms that may start
		}{{time.Second, 0, 0}, {4 * time.Second, 0, 0}, {9 * time.Second, 1, 2}, {20 * time.Second, 1, 3}} {
			if testing.Short() && (all && tt.stall != 4*time.Second || !all && tt.stall != 20*time.Second) {
				continue
			}
			t.Run(fmt.Sprintf("all=%t/%v", all, tt.stall), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					c, disks := stallingCluster(t, 3)
					lead, l := c.leader()
					_, f := c.follower()
					s := f.attach(time.Hour)
					c.settled()
					term := l.replica.Raft().CurrentTerm()
					var release []func()
					for id, d := range disks {
						if all || id == lead {
							release = append(release, d.stall())
						}
					}
					begin := time.Now()
					written := make(chan time.Duration, 1)
					go func() {
						c.sure(f, &s, func(s session.Session) command.Command { return create(s, "/during", 0) })
						written <- time.Since(begin)
					}()
					time.Sleep(tt.stall)
					for _, f := range release {
						f()
					}
					took := <-written
					switch {
					case took > tt.stall+2*time.Second:
						t.Errorf("the service was away for %v", took)
					case !all && tt.stall > 9*time.Second && took > 9*time.Second:
						t.Errorf("no other server led for %v", took)
					}
					time.Sleep(5 * time.Second)
					_, now := c.leader()
					least := tt.least
					if all {
						least = 0
					}
					if terms := now.replica.Raft().CurrentTerm() - term; terms < least || terms > tt.most {
						t.Errorf("%d terms were begun, want %d to %d", terms, least, tt.most)
					}
					c.settled()
				})
			})
		}
	}
}

// TestHandingOverHasALimit: a leader can't hand over leadership while its disk hangs in
// the middle of a write, and the caller of Transfer gets the error in time.
func TestHandingOverHasALimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, disks := stallingCluster(t, 3)
		lead, l := c.leader()
		release := disks[lead].stall()
		l.send(command.Command{Kind: command.KindAttach, Timeout: 10_000})
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- l.Transfer(ctx) }()
		select {
		case err := <-done:
			if err == nil {
				t.Error("it says that it has handed over")
			}
		case <-time.After(time.Minute):
			t.Error("it is still at it after a minute")
		}
		release()
		c.settled()
	})
}

// TestClosedWhileTheDiskHangs closes a follower in the middle of a write that lasts
// longer than Close waits. When the disk continues, so does Raft, on closed stores and
// with entries that are committed by now. That must not crash the program.
func TestClosedWhileTheDiskHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, disks := stallingCluster(t, 3)
		id, f := c.follower()
		_, lead := c.leader()
		s := lead.attach(time.Hour)
		for _, d := range disks {
			d.slow(time.Millisecond)
		}
		var release func()
		for i := range 40 {
			if i == 20 {
				release = disks[id].stall()
			}
			lead.send(create(s, fmt.Sprintf("/while-it-hangs-%d", i), 0))
			time.Sleep(time.Millisecond)
		}
		if err := f.Close(); err == nil {
			t.Error("Close says that everything went well")
		}
		release()
		time.Sleep(time.Second)
		delete(c.rigs, id)
		c.start(id).awaitServed()
		c.settled()
	})
}

// TestSlowDisksSettle slows log writes on every disk to six seconds, which is too slow
// for a leader, while votes are fast. After a few elections, the servers leave a leader
// alone for longer.
func TestSlowDisksSettle(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector; not with -short")
	}
	inBubble(t, func(t *testing.T) {
		c, disks := stallingCluster(t, 3)
		_, f := c.follower()
		s := f.attach(time.Hour)
		for _, d := range disks {
			d.slow(6 * time.Second)
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		var done atomic.Int32
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				path := fmt.Sprintf("/slow%d", done.Load())
				o := c.sureWithin(f, &s, time.Hour, func(s session.Session) command.Command { return create(s, path, 0) })
				if o.code != proto.Ok && o.code != proto.ErrNodeExists {
					t.Errorf("%s: %+v", path, o)
					return
				}
				done.Add(1)
			}
		})
		settle := 5 * time.Minute
		if testing.Short() {
			settle = 2 * time.Minute
		}
		time.Sleep(settle)
		term := f.replica.Raft().CurrentTerm()
		t.Logf("after %v: term %d, %d writes", settle, term, done.Load())
		before := done.Load()
		time.Sleep(settle)
		if now := f.replica.Raft().CurrentTerm(); now != term {
			t.Errorf("%d more elections in the next %v", now-term, settle)
		}
		if least := int32(settle / (30 * time.Second)); done.Load()-before < least {
			t.Errorf("%d writes in %v", done.Load()-before, settle)
		}
		for _, d := range disks {
			d.slow(0)
		}
		close(stop)
		wg.Wait()
		c.settled()
	})
}
