package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// load writes to a cluster and records the acknowledged writes.
type load struct {
	mu    sync.Mutex
	acked map[string]client.Stat
	more  chan struct{} // signaled after every acknowledgement
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// startLoad starts writers that each create znodes and set data.
func startLoad(t *testing.T, addrs string, writers int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{acked: make(map[string]client.Stat), more: make(chan struct{}, 1), stop: cancel}
	t.Cleanup(l.end)
	for w := range writers {
		c := connect(t, addrs)
		l.wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				path := fmt.Sprintf("/load/%d-%d", w, n)
				_, stat, err := c.CreateStat(ctx, path, []byte(path))
				if err == nil && n%3 == 0 {
					stat, err = c.Set(ctx, path, []byte(path), 0)
				}
				if err == nil {
					l.note(path, stat)
				}
			}
		})
	}
	return l
}

func (l *load) note(path string, stat client.Stat) {
	l.mu.Lock()
	l.acked[path] = stat
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// reach waits until n znodes are acknowledged and returns them.
func (l *load) reach(t *testing.T, n int) map[string]client.Stat {
	t.Helper()
	until := ctx(t)
	for {
		l.mu.Lock()
		if len(l.acked) >= n {
			copied := make(map[string]client.Stat, len(l.acked))
			for path, stat := range l.acked {
				copied[path] = stat
			}
			l.mu.Unlock()
			return copied
		}
		l.mu.Unlock()
		select {
		case <-l.more:
		case <-until.Done():
			t.Fatalf("%d writes were not acknowledged in time", n)
		}
	}
}

func (l *load) end() {
	l.stop()
	l.wg.Wait()
}

// Three servers under load are backed up, killed and wiped. One is restored, the others
// join it empty. Every znode acknowledged before the backup began should be on every
// server, with its Stat. Sessions should have ended, and zxids should be above everything
// that clients have seen.
func TestADestroyedCluster(t *testing.T) {
	process.Needed(t)
	c := lay(t, 3)
	for _, m := range c.members {
		m.start(t)
	}
	setup := connect(t, c.addrs())
	must.Get(setup.Create(ctx(t), "/load", []byte("below here")))(t)
	must.Get(setup.Create(ctx(t), "/ephemeral", nil, client.Ephemeral))(t)
	l := startLoad(t, c.addrs(), 4)
	before := l.reach(t, 300)

	file := filepath.Join(t.TempDir(), "cluster.zkb")
	out := works(t, "backup", "--auth", "digest:root:pw", "--from", "http://127.0.0.1:1", "--from", "http://"+c.members[0].admin, file)
	if !strings.Contains(out, "compared with its digest") {
		t.Errorf("%s", out)
	}
	works(t, "backup", "verify", file)
	l.mu.Lock()
	now := len(l.acked)
	l.mu.Unlock()
	l.reach(t, now+100) // the load continues: we lose everything that is acknowledged from here on
	for _, m := range c.members {
		m.proc.Kill()
	}
	l.end()
	var seen int64
	for _, stat := range l.acked {
		seen = max(seen, stat.Mzxid)
	}
	session := setup.Session()
	_ = setup.Close()

	for _, m := range c.members {
		m.empty(t)
	}
	damaged(t, c.members[1], file)
	works(t, "restore", "--dry-run", file, c.members[1].cfg)
	out = works(t, "restore", file, c.members[1].cfg)
	if !strings.Contains(out, "Start this server") {
		t.Errorf("%s", out)
	}
	refused(t, []string{"restore", file, c.members[1].cfg}, "a state of zkgo already exists", c.members[1].dir)
	c.members[1].start(t)
	first := connect(t, c.members[1].proc.Addr)
	must.Do(t, first.Sync(ctx(t), "/"))
	for _, i := range []int{0, 2} {
		c.members[i].start(t)
	}
	for _, m := range c.members {
		check(t, m, before, seen)
	}
	if _, err := process.Connect(c.members[0].proc.Addr, session.ID, session.Password[:], time.Minute); !errors.Is(err, proto.ErrSessionExpired) {
		t.Errorf("a session of before: %v", err)
	}
	// Once the others have votes, any one of the three may stop again.
	wait.Eventually(t, "three votes", func() bool { return strings.Count(c.members[1].proc.Output(), "a vote") >= 2 })
	c.members[1].proc.Kill()
	after := connect(t, c.members[0].proc.Addr+","+c.members[2].proc.Addr)
	if _, err := after.Create(ctx(t), "/after", nil); err != nil {
		t.Error(err)
	}
}

// check compares one server's data with the acknowledged writes.
func check(t *testing.T, m *member, want map[string]client.Stat, seen int64) {
	t.Helper()
	c := connect(t, m.proc.Addr)
	must.Do(t, c.Sync(ctx(t), "/"))
	wrong := 0
	for path, stat := range want {
		data, got, err := c.Get(ctx(t), path)
		if err != nil || string(data) != path || got != stat {
			if wrong++; wrong <= 3 {
				t.Errorf("server %d: %s is %q %+v, %v, acknowledged was %+v", m.id, path, data, got, err, stat)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("server %d: %d of %d znodes are not what was acknowledged before the backup", m.id, wrong, len(want))
	}
	if _, there, err := c.Exists(ctx(t), "/ephemeral"); there || err != nil {
		t.Errorf("server %d: an ephemeral znode of a session of before: %v, %v", m.id, there, err)
	}
	_, stat, err := c.CreateStat(ctx(t), fmt.Sprint("/new", m.id), nil)
	if err != nil || stat.Czxid <= seen {
		t.Errorf("server %d: a new znode has zxid %#x, clients have seen %#x: %v", m.id, stat.Czxid, seen, err)
	}
}

// damaged tries corrupted and truncated backups, and checks that they leave no trace.
func damaged(t *testing.T, m *member, file string) {
	t.Helper()
	whole := must.Get(os.ReadFile(file))(t)
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 0x10
	for name, content := range map[string][]byte{"flipped.zkb": flipped, "cut.zkb": whole[:len(whole)-7], "longer.zkb": append(append([]byte(nil), whole...), 'x')} {
		bad := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(bad, content, 0o600))
		for _, args := range [][]string{{"restore", bad, m.cfg}, {"backup", "verify", bad}, {"inspect", "verify", bad}} {
			refused(t, args, bad, "at offset")
		}
	}
	if left, err := os.ReadDir(m.dir); err != nil || len(left) != 1 {
		t.Errorf("a restore that was refused left something: %v, %v", left, err)
	}
}
