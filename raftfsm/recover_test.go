package raftfsm

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/session"
)

// config returns the configuration of a server of c that is not running.
func (c *cluster) config(id uint64) Config {
	c.awaitClosed(id)
	return Config{ID: id, Members: c.list, Log: Log{Dir: c.dir(id) + "/log"}, DataDir: c.dir(id) + "/snap"}
}

// survivors runs three servers, lets them agree on some writes and stops them all. It
// returns a session of theirs.
func survivors(t *testing.T) (*cluster, session.Session) {
	c := newCluster(t, 3).onDisk()
	c.startAll()
	_, r := c.leader()
	s := r.attach(time.Hour)
	r.do(create(s, "/kept", 0))
	r.do(create(s, "/gone", 1))
	c.settled()
	for id := uint64(1); id <= 3; id++ {
		c.kill(id)
	}
	for id := uint64(1); id <= 3; id++ {
		c.awaitClosed(id)
	}
	return c, s
}

// Two of three servers are destroyed. The third one continues alone with everything that
// was acknowledged, but without sessions. Others join. A server of the old ensemble
// doesn't participate in the new one.
func TestRecoveryFromALostQuorum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := survivors(t)
		c.wipe(1)
		r, err := c.config(3).Recover(0)
		if err != nil {
			t.Fatal(err)
		}
		if r.Before.Sessions != 1 || r.Zxid>>32 < r.Before.Zxid>>32+replica.EpochGap || r.Cluster == r.Before.Cluster {
			t.Errorf("%+v", r)
		}
		alone := c.start(3)
		alone.awaitServed()
		if !alone.exists("/kept") || alone.exists("/gone") {
			t.Error("the tree is not what it was without the ephemerals")
		}
		if o, _ := alone.tryReattach(s); o.code != proto.ErrSessionExpired {
			t.Errorf("the old session: %+v", o)
		}
		next := alone.attach(time.Hour)
		if next.ID == s.ID {
			t.Error("a session id is used again")
		}
		if o := alone.do(create(next, "/new", 0)); o.code != proto.Ok || o.zxid <= r.Zxid {
			t.Errorf("%+v", o)
		}

		old := c.start(2) // it has all entries, but still doesn't belong here
		time.Sleep(10 * time.Second)
		if st := old.Status(); st.Serving || c.voters() != 1 {
			t.Errorf("a server of the lost ensemble: %+v, %d votes", st, c.voters())
		}
		c.kill(2)
		if _, err := c.config(2).Rejoin(r.Before.Cluster); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("rejoining the ensemble it is in: %v", err)
		}
		aside, err := c.config(2).Rejoin(r.Cluster)
		if err != nil || len(aside) != 2 {
			t.Fatalf("%v %v", aside, err)
		}
		c.start(1)
		c.start(2).awaitServed()
		c.eventually("three votes", func() bool { return c.voters() == 3 })
		c.settled()
		if !c.rigs[2].exists("/kept") || !c.rigs[2].exists("/new") {
			t.Error("who joined lacks something")
		}
		if p, err := (Config{Log: Log{Dir: aside[0]}, DataDir: aside[1]}).Survey(); err != nil || p.Cluster != r.Before.Cluster || p.Server != 2 {
			t.Errorf("what was set aside: %+v, %v", p, err)
		}
	})
}

// A recovery that is stopped at any step leaves the old state or the new one complete, or
// both.
func TestARecoveryThatIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := survivors(t)
		before, err := c.config(3).Survey()
		if err != nil || before.Znodes == 0 || before.Sessions != 1 || !slices.Equal(before.Voters, []uint64{1, 2, 3}) {
			t.Fatalf("%+v, %v", before, err)
		}
		_, steps, err := recoverUpTo(t, c, 0)
		if err != nil || len(steps) < 8 {
			t.Fatalf("%v, %v", steps, err)
		}
		decided := slices.Index(steps, "journal") + 1
		for k, step := range steps {
			cfg, _, err := recoverUpTo(t, c, k+1)
			if !errors.Is(err, errStopped) {
				t.Fatal(step, err)
			}
			p, err := cfg.Survey()
			switch {
			case err != nil:
				t.Fatal(step, err)
			case k < decided && (p.Cluster != before.Cluster || p.Zxid != before.Zxid || p.Sessions != 1 || p.Index != before.Index):
				t.Errorf("%s: not begun and not what it was: %+v", step, p)
			case k >= decided && (p.Cluster == before.Cluster || p.Zxid <= before.Zxid || p.Sessions != 0 || p.Znodes != before.Znodes-1):
				t.Errorf("%s: begun and not what it is to be: %+v", step, p)
			}
			if _, err := os.Stat(filepath.Join(cfg.Log.Dir, datadir.JournalFile)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the journal is still there: %v", step, err)
			}
		}
	})
}

var errStopped = errors.New("stopped")

// recoverBy is Recover with a function that is called before each step.
func recoverBy(t *testing.T, cfg Config, reached func(step string) error) error {
	t.Helper()
	own, err := cfg.offline()
	if err == nil {
		_, err = replica.Recover(own, 0, reached)
	}
	return err
}

// recoverUpTo recovers a copy of server 3's directories, up to the k-th step, or to the
// end if k is 0.
func recoverUpTo(t *testing.T, c *cluster, k int) (cfg Config, steps []string, err error) {
	cfg = c.config(3)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(c.dir(3))); err != nil {
		t.Fatal(err)
	}
	cfg.Log.Dir, cfg.DataDir = filepath.Join(dir, "log"), filepath.Join(dir, "snap")
	err = recoverBy(t, cfg, func(step string) error {
		if steps = append(steps, step); len(steps) == k {
			return errStopped
		}
		return nil
	})
	return cfg, steps, err
}

// The server that starts after an interrupted recovery finishes it.
func TestAServerFinishesARecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := survivors(t)
		err := recoverBy(t, c.config(3), func(step string) error {
			if strings.HasPrefix(step, "install snapshots") {
				return errStopped
			}
			return nil
		})
		if err == nil {
			t.Fatal("it was not stopped")
		}
		r := c.start(3)
		if r.awaitServed(); !r.exists("/kept") {
			t.Error("the state is not there")
		}
	})
}

func TestUnrecoverable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		if _, err := c.config(1).Recover(0); !errors.Is(err, ErrNoState) {
			t.Errorf("nothing: %v", err)
		}
		if _, err := os.Stat(c.dir(1)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("looking made a directory: %v", err)
		}
		c.startAll()
		if _, err := c.config(1).Recover(0); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("of a server that runs: %v", err)
		}
		if _, err := c.config(1).Rejoin(strings.Repeat("ab", command.ClusterIDSize)); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("of a server that runs: %v", err)
		}
		c.stop(1)
		wrong := c.config(1)
		wrong.ID = 2
		if _, err := wrong.Recover(0); err == nil || !strings.Contains(err.Error(), "server 1") {
			t.Errorf("as another server: %v", err)
		}
		wrong.ID = 9
		if _, err := wrong.Recover(0); err == nil || !strings.Contains(err.Error(), "not on the list") {
			t.Errorf("as a server that is not listed: %v", err)
		}
		if _, err := c.config(1).Recover(1 << 31); err == nil || !strings.Contains(err.Error(), "epoch") {
			t.Errorf("no epoch left: %v", err)
		}
		if p, err := c.config(1).Survey(); err != nil || p.Server != 1 {
			t.Errorf("after all that: %+v, %v", p, err)
		}
	})
}

// The last server can also continue without an ensemble.
func TestRecoveryAsAStandaloneServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := survivors(t)
		cfg := c.config(3)
		cfg.Members, cfg.ID = nil, 1
		if _, err := cfg.Recover(7000); err != nil {
			t.Fatal(err)
		}
		c.list = nil
		if err := os.Rename(c.dir(3), c.dir(1)+"-alone"); err != nil {
			t.Fatal(err)
		}
		r := c.start(1, func(cfg *Config) {
			cfg.Log.Dir, cfg.DataDir = c.dir(1)+"-alone/log", c.dir(1)+"-alone/snap"
		})
		if st := r.awaitServed(); st.Role != Standalone || st.Epoch != 7000 || !r.exists("/kept") {
			t.Errorf("%+v", st)
		}
	})
}
