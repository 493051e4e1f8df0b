package raftfsm

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

// lifetime waits, in fake time, until the session is gone and returns the duration.
func (r *rig) lifetime(s session.Session, limit time.Duration) time.Duration {
	r.t.Helper()
	begin := time.Now()
	for time.Since(begin) < limit {
		r.Tree().RLock()
		_, ok := r.Sessions().Get(s.ID)
		r.Tree().RUnlock()
		if !ok {
			return time.Since(begin)
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.t.Fatalf("session 0x%x still lives after %v", s.ID, limit)
	return 0
}

func TestExpiry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := memoryConfig()
		cfg.TickTime = time.Second
		r := start(t, cfg)
		defer r.close()
		const timeout = 4 * time.Second
		dead, live := r.attach(timeout), r.attach(timeout)
		r.setLive(live.ID)
		r.do(create(dead, "/dead", flagEphemeral))
		r.do(create(live, "/live", flagEphemeral))
		// Allow a tick for the rounding and a quarter of a tick for the loop.
		if d := r.lifetime(dead, time.Minute); d <= timeout || d > timeout+1300*time.Millisecond {
			t.Fatalf("expired after %v, its timeout is %v", d, timeout)
		}
		if r.exists("/dead") || !r.exists("/live") {
			t.Fatal("the wrong znodes are gone")
		}
		last := r.applied[len(r.applied)-1]
		if last.op != proto.OpCloseSession || last.session != dead.ID || last.zxid == 0 || last.events == 0 {
			t.Fatalf("the expiry was told as %+v", last)
		}
		if o := r.do(create(dead, "/late", 0)); o.code != proto.ErrSessionExpired {
			t.Fatalf("a write after the expiry: %v", o.code)
		}
		time.Sleep(time.Hour)
		if !r.exists("/live") {
			t.Fatal("a session that was heard of expired")
		}
		r.setLive()
		if d := r.lifetime(live, time.Minute); d > timeout+2*time.Second {
			t.Fatalf("expired %v after the last sign of life", d)
		}
	})
}

// TestExpiryAfterAttach: the timeout runs from the last attach, with its value, and an
// expiry of an earlier generation has no effect.
func TestExpiryAfterAttach(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := memoryConfig()
		cfg.TickTime = time.Second
		r := start(t, cfg)
		defer r.close()
		s := r.attach(4 * time.Second)
		time.Sleep(3 * time.Second)
		s.Timeout = 20_000
		if o := r.reattach(s); o.code != proto.Ok || o.attached.Gen != 2 || o.zxid != 0 {
			t.Fatalf("attach: %+v", o)
		}
		r.proposeOwn(&command.Command{Kind: command.KindExpire, Session: s.ID, Gen: 1})
		if o := r.do(command.Command{Kind: command.KindSync}); o.code != proto.Ok {
			t.Fatal(o.code)
		}
		if d := r.lifetime(s, time.Minute); d <= 20*time.Second || d > 22*time.Second {
			t.Fatalf("expired %v after the attach, its timeout is 20 s", d)
		}
	})
}

// TestExpiryAfterRestart: a new leader gives every session a full timeout.
func TestExpiryAfterRestart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := diskConfig(t, "")
		cfg.TickTime = time.Second
		r := start(t, cfg)
		s := r.attach(6 * time.Second)
		time.Sleep(5 * time.Second)
		r.close()
		r = start(t, cfg)
		defer r.close()
		if d := r.lifetime(s, time.Minute); d <= 6*time.Second || d > 8*time.Second {
			t.Fatalf("expired %v after the restart", d)
		}
	})
}

// TestSlowLogKeepsSessions: while the log stalls, a session with a command in flight
// doesn't expire.
func TestSlowLogKeepsSessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg, faults := faultyConfig(memoryConfig())
		cfg.TickTime = time.Second
		r := start(t, cfg)
		defer r.close()
		s := r.attach(4 * time.Second)
		release := faults.stall()
		ch := r.send(create(s, "/a", flagEphemeral))
		time.Sleep(time.Minute)
		release()
		if o := r.get(ch); o.code != proto.Ok {
			t.Fatal(o.code)
		}
		time.Sleep(time.Second)
		if !r.exists("/a") {
			t.Fatal("the session expired while its command waited for the log")
		}
	})
}

// TestManualClock advances an injected clock by many ticks at once. That isn't a pause of
// the process, so sessions expire.
func TestManualClock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		clock := newManualClock()
		cfg := memoryConfig()
		cfg.Now = clock.now
		r := start(t, cfg)
		defer r.close()
		s := r.attach(10 * time.Second)
		time.Sleep(time.Hour)
		r.do(create(s, "/a", flagEphemeral)) // session timeouts don't depend on real time
		clock.advance(9 * time.Second)
		r.Kick()
		synctest.Wait()
		if !r.exists("/a") {
			t.Fatal("expired before its time")
		}
		clock.advance(20 * time.Second)
		r.Kick()
		synctest.Wait()
		if r.exists("/a") {
			t.Fatal("did not expire when the clock was set forward")
		}
	})
}

func TestReap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := memoryConfig()
		cfg.Containers.Interval = 10 * time.Second
		r := start(t, cfg)
		defer r.close()
		s := r.attach(time.Hour)
		r.setLive(s.ID)
		r.do(write(s, proto.OpCreateContainer, &proto.CreateRequest{Path: "/c", ACL: proto.OpenACL(), Flags: flagContainer}))
		r.do(create(s, "/c/child", 0))
		ttl := &proto.CreateTTLRequest{Path: "/ttl", ACL: proto.OpenACL(), Flags: 5, TTL: 30_000}
		if o := r.do(write(s, proto.OpCreateTTL, ttl)); o.code != proto.Ok {
			t.Fatal(o.code)
		}
		time.Sleep(25 * time.Second)
		if !r.exists("/c") || !r.exists("/ttl") {
			t.Fatal("reaped too early")
		}
		r.do(write(s, proto.OpDelete, &proto.DeleteRequest{Path: "/c/child", Version: -1}))
		r.do(set(s, "/ttl", nil)) // restarts the TTL
		time.Sleep(12 * time.Second)
		if r.exists("/c") || !r.exists("/ttl") {
			t.Fatalf("container there: %v, ttl znode there: %v", r.exists("/c"), r.exists("/ttl"))
		}
		time.Sleep(30 * time.Second)
		if r.exists("/ttl") {
			t.Fatal("the znode outlived its time")
		}
	})
}

// TestClockThatJumps: if the leader's wall clock is wrong by a year, only TTL znodes are
// affected. Session timeouts use another clock.
func TestClockThatJumps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		var ahead atomic.Int64
		cfg := memoryConfig()
		cfg.Containers.Interval = 10 * time.Second
		cfg.Wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		r := start(t, cfg)
		defer r.close()
		s := r.attach(30 * time.Second)
		r.setLive(s.ID)
		ttl := &proto.CreateTTLRequest{Path: "/ttl", ACL: proto.OpenACL(), Flags: 5, TTL: time.Hour.Milliseconds()}
		r.do(write(s, proto.OpCreateTTL, ttl))
		for _, step := range []struct {
			ahead time.Duration
			stays bool
		}{{0, true}, {-year, true}, {0, true}, {year, false}} {
			ahead.Store(int64(step.ahead))
			time.Sleep(25 * time.Second)
			if r.exists("/ttl") != step.stays {
				t.Fatalf("the clock is wrong by %v; the znode is there: %v", step.ahead, !step.stays)
			}
			if o := r.do(command.Command{Kind: command.KindSync, Session: s.ID, Gen: s.Gen}); o.code != proto.Ok {
				t.Fatalf("the clock is wrong by %v, and the session is gone: %+v", step.ahead, o)
			}
		}
	})
}

// TestReapRace: a znode that changed after the leader looked at it isn't reaped.
func TestReapRace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, memoryConfig())
		defer r.close()
		s := r.attach(time.Hour)
		r.setLive(s.ID)
		ttl := &proto.CreateTTLRequest{Path: "/ttl", ACL: proto.OpenACL(), Flags: 5, TTL: 1000}
		r.do(write(s, proto.OpCreateTTL, ttl))
		time.Sleep(2 * time.Second)
		now := time.Now()
		r.do(set(s, "/ttl", nil))
		stale := command.Command{Kind: command.KindReap, Op: proto.OpDeleteContainer}
		r.Tree().RLock()
		found := r.Tree().Reapable(now.Add(time.Hour).UnixMilli(), 0, 10)
		r.Tree().RUnlock()
		if len(found) != 1 {
			t.Fatalf("%d znodes to reap", len(found))
		}
		found[0].Mzxid-- // the value before the write
		stale.Body = found[0].Append(nil)
		r.proposeOwn(&stale)
		r.do(command.Command{Kind: command.KindSync})
		if !r.exists("/ttl") {
			t.Fatal("a znode was reaped although it had changed")
		}
	})
}
