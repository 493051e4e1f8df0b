package raftfsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/restore"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// readyToRestore waits until every server knows that all servers support restores.
func (c *cluster) readyToRestore() {
	c.t.Helper()
	c.awaitLevel(apply.RestoreLevel)
}

// killedInTheMiddle kills all three servers when part of a restore has arrived, while
// the state has /before. It returns the channel that reports how the restore ended.
func (c *cluster) killedInTheMiddle() <-chan apply.Restored {
	c.t.Helper()
	_, r := c.follower()
	r.do(create(r.attach(time.Hour), "/before", 0))
	done := r.replace(ofMany(c.t))
	c.eventually("some of it", func() bool { return r.pieces() > 3 })
	for id := range uint64(3) {
		c.kill(id + 1)
	}
	return done
}

// pieces returns how many pieces of an arriving state the server has, or −1 if none is
// arriving.
func (r *rig) pieces() int {
	r.Tree().RLock()
	defer r.Tree().RUnlock()
	if a := r.replica.Machine.Arriving; a != nil {
		return int(a.Next)
	}
	return -1
}

// replace starts a restore of a tree in the background.
func (r *rig) replace(tr *tree.Tree) chan apply.Restored {
	done := make(chan apply.Restored, 1)
	go func() {
		z, err := r.Replace(context.Background(), tr, session.NewTable())
		done <- apply.Restored{Zxid: z, Err: err}
	}()
	return done
}

// ofMany returns a tree of many pieces.
func ofMany(t testing.TB) *tree.Tree {
	t.Helper()
	tr := treeOf(t, 7, 0)
	tx := tree.Txn{Zxid: tr.LastZxid(), Time: 5}
	for i := range 40 {
		tx.Zxid++
		tr.Apply(&tx, proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprintf("/r/%d", i+1), Data: bytes.Repeat([]byte("x"), 60<<10), ACL: proto.OpenACL()})
	}
	return tr
}

// TestRestoreInAnEnsemble restores through each server while clients write.
func TestRestoreInAnEnsemble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRestoreInAnEnsemble)
}

func testRestoreInAnEnsemble(t *testing.T) {
	c := newCluster(t, 4)
	c.list[3].Observer = true
	c.startAll()
	c.readyToRestore()
	c.farApart()
	lead, _ := c.leader()
	for id, r := range c.rigs {
		if testing.Short() && id != 4 { // the observer
			continue
		}
		old := make(map[uint64]session.Session)
		for other, r := range c.rigs {
			old[other] = r.attach(time.Hour)
			r.do(create(old[other], fmt.Sprint("/before-", other), flagEphemeral))
		}
		before := r.zxid()
		tr := ofMany(t)
		tr.Apply(&tree.Txn{Zxid: 8<<32 | 1, Session: 99}, proto.OpCreate, &proto.CreateRequest{Path: "/r/e", Flags: flagEphemeral, ACL: proto.OpenACL()})
		const high = 1<<56 - 1<<40 // above any clock
		sessions := session.NewTable()
		sessions.Put(session.Session{ID: 5<<56 | high, Timeout: 4000, Gen: 1})
		sessions.Put(session.Session{ID: 99, Timeout: 4000, Gen: 1})
		done := make(chan apply.Restored, 1)
		go func() {
			z, err := r.Replace(t.Context(), tr, sessions)
			done <- apply.Restored{Zxid: z, Err: err}
		}()
		// A client writes all the time. Writes acknowledged after the restore count.
		_, w := c.follower()
		s, writes := w.attach(time.Hour), 0
		var o apply.Restored
		for running := true; running; writes++ {
			if got := w.do(create(s, fmt.Sprint("/w-", writes), 0)); got.code == proto.ErrSessionExpired {
				s = w.attach(time.Hour)
			}
			select {
			case o = <-done:
				running = false
			default:
			}
		}
		if o.Err != nil {
			t.Fatalf("through server %d, %d leads: %v", id, lead, o.Err)
		}
		if o.Zxid>>32 <= before>>32 || uint32(o.Zxid) != 0 {
			t.Errorf("zxid %x after %x", o.Zxid, before)
		}
		c.settled()
		for other, r := range c.rigs {
			if !r.exists("/r/40") || r.exists("/r/e") || r.exists(fmt.Sprint("/before-", other)) {
				t.Errorf("server %d after a restore through %d: %q", other, id, r.dump()[:200])
			}
			if o := r.do(create(old[other], "/never", 0)); o.code != proto.ErrSessionExpired {
				t.Errorf("a session of before writes: %+v", o)
			}
			if o := r.reattach(old[other]); o.code != proto.ErrSessionExpired {
				t.Errorf("a session of before comes back: %+v", o)
			}
			fresh := r.attach(time.Hour)
			if fresh.ID&(1<<56-1) <= high {
				t.Errorf("session %x", fresh.ID)
			}
			if o := r.do(create(fresh, fmt.Sprintf("/since-%d-%d", id, other), 0)); o.code != proto.Ok {
				t.Errorf("%+v", o)
			}
		}
		c.settled()
		for other := range c.rigs {
			if !r.exists(fmt.Sprintf("/since-%d-%d", id, other)) {
				t.Error("a write after the restore is lost")
			}
		}
		if err := r.Tree().Check(); err != nil {
			t.Error(err)
		}
		t.Logf("%d writes beside the restore through server %d", writes, id)
	}
	if now, _ := c.leader(); now != lead {
		t.Errorf("server %d leads, it was %d", now, lead)
	}
}

// TestRestoreIsCutShort: whatever interrupts the restore, nothing has changed, and the
// next restore works.
func TestRestoreIsCutShort(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(c *cluster, origin, lead uint64, stop func()){
		"the leader dies":       func(c *cluster, _, lead uint64, _ func()) { c.kill(lead) },
		"the lead goes on":      func(c *cluster, _, lead uint64, _ func()) { _ = c.rigs[lead].Transfer(c.t.Context()) },
		"the origin dies":       func(c *cluster, origin, _ uint64, _ func()) { c.kill(origin) },
		"the origin stops":      func(c *cluster, origin, _ uint64, _ func()) { c.stop(origin) },
		"who asked for it goes": func(_ *cluster, _, _ uint64, stop func()) { stop() },
		"the way is cut":        func(c *cluster, origin, lead uint64, _ func()) { c.net.Reset(hostOf(origin), hostOf(lead)) },
	} {
		for _, leading := range []bool{false, true} {
			if testing.Short() && (leading != (name == "the origin stops") || name == "the lead goes on" || name == "the origin dies" || name == "who asked for it goes") {
				continue
			}
			if leading && name == "the way is cut" {
				continue // the origin leads, so there is no connection to cut
			}
			t.Run(fmt.Sprint(name, " ", leading), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testRestoreIsCutShort(t, leading, cut) })
			})
		}
	}
}

func testRestoreIsCutShort(t *testing.T, leading bool, cut func(c *cluster, origin, lead uint64, stop func())) {
	c := newCluster(t, 3)
	c.startAll()
	c.readyToRestore()
	c.farApart()
	lead, l := c.leader()
	origin, r := lead, l
	if !leading {
		origin, r = c.follower()
	}
	s := r.attach(time.Hour)
	r.do(create(s, "/before", 0))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	tr := ofMany(t)
	go func() {
		_, err := r.Replace(ctx, tr, session.NewTable())
		done <- err
	}()
	c.eventually("some of it", func() bool { return r.pieces() > 3 })
	begin := time.Now()
	cut(c, origin, lead, stop)
	err := <-done
	t.Logf("%v after %v", err, time.Since(begin))
	if time.Since(begin) > restore.SettleLimit/2 {
		t.Error("it waited until nothing more could be hoped for")
	}
	if err == nil || errors.Is(err, ErrRestoreUnknown) {
		t.Errorf("it said %v", err)
	}
	_, l = c.leader()
	s = c.surelyAttached(l, time.Hour) // the lead may move once more
	c.sure(l, &s, func(s session.Session) command.Command { return create(s, "/after", 0) })
	c.settled()
	for id, r := range c.rigs {
		if !r.exists("/before") || r.exists("/r") {
			t.Errorf("server %d: %.200q", id, r.dump())
		}
	}
	// An abandoned restore is dropped, so that snapshots are possible again.
	time.Sleep(apply.StateTransferLimit + time.Second)
	l.do(create(s, "/later", 0))
	c.settled()
	for id, r := range c.rigs {
		if n := r.pieces(); n >= 0 {
			t.Errorf("server %d keeps %d pieces", id, n)
		}
	}
	if o := <-l.replace(ofMany(t)); o.Err != nil {
		t.Errorf("the next one: %v", o.Err)
	}
	c.settled()
	if !l.exists("/r/40") {
		t.Error("the next one is not there")
	}
}

// TestRestoreAndRestarts: after a restart of all servers, an uncommitted restore is gone
// and a committed one is in force, whether the log or a snapshot brings it.
func TestRestoreAndRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRestoreAndRestarts)
}

func testRestoreAndRestarts(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	trailing := func(cfg *Config) { cfg.Log.SnapTrailing = 1 }
	start := func(ids ...uint64) {
		for _, id := range ids {
			c.start(id, trailing)
		}
		for _, id := range ids {
			c.rigs[id].awaitServed()
		}
	}
	start(1, 2, 3)
	c.readyToRestore()
	c.farApart()
	done := c.killedInTheMiddle()
	if o := <-done; o.Err == nil {
		t.Error("restored")
	}
	start(1, 2, 3)
	c.settled()
	for id, r := range c.rigs {
		if !r.exists("/before") || r.exists("/r") || r.pieces() >= 0 {
			t.Errorf("server %d after a restart in the middle: %d pieces, %.100q", id, r.pieces(), r.dump())
		}
	}

	// One server is down, and finds the restore in the log.
	out, _ := c.follower()
	c.stop(out)
	_, r := c.leader()
	if o := <-r.replace(ofMany(t)); o.Err != nil {
		t.Fatal(o.Err)
	}
	s := r.attach(time.Hour)
	r.do(create(s, "/since", 0))
	start(out)
	c.settled()
	// One server is down, and the log no longer has the restore.
	out, _ = c.follower()
	c.stop(out)
	_, r = c.leader()
	tr := ofMany(t)
	tr.Apply(&tree.Txn{Zxid: 9<<32 | 1}, proto.OpCreate, &proto.CreateRequest{Path: "/second", ACL: proto.OpenACL()})
	if o := <-r.replace(tr); o.Err != nil {
		t.Fatal(o.Err)
	}
	s = r.attach(time.Hour)
	r.do(create(s, "/since", 0))
	for _, r := range c.rigs {
		r.compact()
	}
	start(out)
	c.settled()
	if !c.rigs[out].exists("/second") || !c.rigs[out].exists("/since") {
		t.Errorf("%.200q", c.rigs[out].dump())
	}
	for id := range uint64(3) {
		c.stop(id + 1)
	}
	start(1, 2, 3)
	c.settled()
	for id, r := range c.rigs {
		if !r.exists("/second") || !r.exists("/since") || r.exists("/before") {
			t.Errorf("server %d: %.200q", id, r.dump())
		}
		if err := r.Tree().Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestRestoreNeedsAllServers: the restore is refused, and the error names the servers
// that don't support it or don't answer.
func TestRestoreNeedsAllServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.start(1)
		c.start(2)
		c.start(3, func(cfg *Config) { cfg.level = apply.RestoreLevel - 1 })
		for _, r := range c.rigs {
			r.awaitServed()
		}
		time.Sleep(10 * ensemble.LevelEvery)
		for _, want := range []string{"server 3 knows level 1", "server 3 does not answer"} {
			o := <-c.rigs[1].replace(treeOf(t, 3, 1))
			if !errors.Is(o.Err, ErrRestoreLevel) || !strings.Contains(o.Err.Error(), want) || strings.Contains(o.Err.Error(), "server 2") {
				t.Errorf("%v", o.Err)
			}
			if c.rigs[3] != nil {
				c.stop(3)
				c.leader()
				c.rigs[1].awaitServed()
			}
		}
	})
}

// TestRestoreWithoutALeader: the restore is refused when no leader has appeared for a
// while. A second one at the same server is refused immediately.
func TestRestoreWithoutALeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		c.readyToRestore()
		c.kill(2)
		c.kill(3)
		time.Sleep(time.Minute)
		first := c.rigs[1].replace(treeOf(t, 3, 1))
		synctest.Wait()
		if o := <-c.rigs[1].replace(treeOf(t, 3, 1)); !errors.Is(o.Err, ErrRestoreBusy) {
			t.Errorf("%v", o.Err)
		}
		if o := <-first; !errors.Is(o.Err, ErrRestoreNoLeader) {
			t.Errorf("%v", o.Err)
		}
	})
}

// TestRestoreThatDoesNotBegin: the first command of the restore is lost together with
// the path to the leader.
func TestRestoreThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		c.readyToRestore()
		lead, _ := c.leader()
		origin, r := c.follower()
		c.net.Hold(hostOf(origin), hostOf(lead))
		done, begin := r.replace(treeOf(t, 3, 1)), time.Now()
		synctest.Wait()
		c.net.Reset(hostOf(origin), hostOf(lead))
		c.net.Heal(hostOf(origin), hostOf(lead))
		if o := <-done; !errors.Is(o.Err, restore.ErrLost) || time.Since(begin) > restore.BeginLimit/2 {
			t.Errorf("%v after %v", o.Err, time.Since(begin))
		}
	})
}

// TestRecoveryInTheMiddleOfARestore: a recovery does not include an uncommitted
// restore.
func TestRecoveryInTheMiddleOfARestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		c.readyToRestore()
		c.farApart()
		done := c.killedInTheMiddle()
		<-done
		for id := range uint64(3) {
			c.awaitClosed(id + 1)
		}
		cfg := c.config(1)
		if _, err := cfg.Recover(0); err != nil {
			t.Fatal(err)
		}
		tr, _, _, err := cfg.Load()
		if err != nil || tr.Get("/before") == nil || tr.Get("/r") != nil {
			t.Errorf("recovered: %v", err)
		}
	})
}

// TestRestoreOfAServerAlone restores in memory and on disks, with a restart.
func TestRestoreOfAServerAlone(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, cfg Config) {
		r := start(t, cfg)
		s := r.attach(time.Hour)
		r.do(create(s, "/before", 0))
		want := ofMany(t)
		digest := want.Digest()
		if o := <-r.replace(want); o.Err != nil || o.Zxid != 8<<32 {
			t.Fatalf("%x %v", o.Zxid, o.Err)
		}
		r.do(create(r.attach(time.Hour), "/since", 0))
		before := r.dump()
		if cfg.Memory {
			return
		}
		r.close()
		again := start(t, cfg)
		if again.dump() != before {
			t.Errorf("after a restart: %.200q", again.dump())
		}
		if again.exists("/before") || again.Tree().Digest() == digest { // the digest without /since
			t.Error("not what was restored")
		}
	})
}

// TestRestoresUnderFire kills a server at a random moment of a restore and restarts it.
// All servers have the old state or all have the new one, as the answer said.
func TestRestoresUnderFire(t *testing.T) {
	t.Parallel()
	verdicts := make(map[string]int)
	seeds := uint64(8)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { verdicts[testUnderFire(t, seed)]++ })
	}
	t.Logf("%v", verdicts)
	if verdicts["done"] == 0 || verdicts["nothing"] == 0 {
		t.Errorf("void: %v", verdicts)
	}
}

func testUnderFire(t *testing.T, seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := newCluster(t, 3).onDisk()
	c.startAll()
	c.readyToRestore()
	c.farApart()
	origin, dead := rnd.Uint64N(3)+1, rnd.Uint64N(3)+1
	r := c.rigs[origin]
	r.do(create(r.attach(time.Hour), "/before", 0))
	begin := time.Now()
	done := r.replace(ofMany(t))
	time.Sleep(time.Duration(rnd.Int64N(int64(500 * time.Millisecond))))
	killed := time.Since(begin)
	c.kill(dead)
	time.Sleep(time.Duration(rnd.Int64N(int64(3 * time.Second))))
	o := <-done
	c.start(dead).awaitServed()
	_, l := c.leader()
	l.do(create(l.attach(time.Hour), "/after", 0))
	c.settled()
	old, is := l.exists("/before"), l.exists("/r/40")
	if old == is {
		t.Errorf("seed %d: neither the old state nor the new one: %.200q", seed, l.dump())
	}
	t.Logf("seed %d: through %d, %d dies after %v: %v", seed, origin, dead, killed, o.Err)
	switch {
	case o.Err == nil:
		if !is {
			t.Errorf("seed %d: it was not done", seed)
		}
		return "done"
	case errors.Is(o.Err, ErrRestoreUnknown):
		return "unknown"
	default:
		if !old {
			t.Errorf("seed %d: it was done, and the answer is %v", seed, o.Err)
		}
		return "nothing"
	}
}
