package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// pinging sends pings at a steady pace until the connection is closed, and returns the
// time of the last reply.
func (w *wire) pinging(every time.Duration) time.Time {
	w.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := w.nc.Write(appendRequest(nil, proto.XidPing, proto.OpPing, nil)); err != nil {
				return
			}
			time.Sleep(every)
		}
	}()
	var last time.Time
	for {
		if _, err := w.frame(); err != nil {
			<-ended
			return last
		}
		last = time.Now()
	}
}

// short opens a session with a short timeout.
func short(t *testing.T, s *Server, timeout time.Duration) *wire {
	t.Helper()
	w := dial(t, s)
	w.handshake(proto.ConnectRequest{TimeOut: int32(timeout / time.Millisecond)})
	return w
}

// awaitNode waits until a znode exists on a server, or no longer exists, and returns
// when that was.
func awaitNode(t *testing.T, s *Server, path string, there bool) time.Time {
	t.Helper()
	eventually(t, path, func() bool {
		s.tree.RLock()
		defer s.tree.RUnlock()
		return (s.tree.Get(path) != nil) == there
	})
	return time.Now()
}

// A server that is cut off never tells a client that it holds a lock after another
// client has got the lock.
func TestNoClientHoldsAnothersLock(t *testing.T) {
	const timeout = 6 * time.Second
	for _, tc := range []struct {
		name   string
		leader bool          // the client that holds the lock is connected to a leader that is cut off
		silent time.Duration // how long the client is silent around the cut
	}{
		{"a follower is cut off", false, 0},
		{"the leader is cut off", true, 0},
		{"a client that is silent for a while at a follower", false, timeout * 95 / 100},
		{"a client that is silent for a while at the leader", true, timeout * 95 / 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				leader, others := e.leader()
				s, rest := others[0], []*Server{leader, others[1]}
				if tc.leader {
					s, rest = leader, others
				}
				holder := short(t, s, timeout)
				holder.create("/lock", nil, proto.ModeEphemeral)
				awaitNode(t, rest[1], "/lock", true)
				time.Sleep(tc.silent * 6 / 10)
				e.net.Partition(hosts(s), hosts(rest...))
				defer e.net.Rejoin(hosts(s), hosts(rest...))
				synctest.Wait()
				time.Sleep(tc.silent * 4 / 10)
				told := make(chan time.Time)
				go func() { told <- holder.pinging(timeout / 20) }()
				free := awaitNode(t, rest[1], "/lock", false)
				last := <-told
				t.Logf("got a reply %v before the lock was free", free.Sub(last))
				if !last.Before(free) {
					t.Errorf("the old holder got a reply %v after the lock was free", last.Sub(free))
				}
				if !last.IsZero() && free.Sub(last) > timeout {
					t.Error("and its connection was closed too early")
				}
			}, func(c *Config) {
				c.TickTime = 500 * time.Millisecond
				c.Quorum.SyncLimit = 60
				c.MinSessionTimeout = time.Second
			})
		})
	}
}

// A client that sends slowly, but in time, should keep its session.
func TestASlowClientKeepsItsSession(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		const timeout = 6 * time.Second
		for _, s := range e.servers {
			w := short(t, s, timeout)
			for range 10 {
				time.Sleep(timeout * 8 / 10)
				w.must(proto.OpPing, nil)
			}
		}
	}, func(c *Config) { c.TickTime = 500 * time.Millisecond })
}

// The maximum age of a read is syncLimit ticks or two thirds of the session's timeout,
// whichever is less.
func TestStalenessIsBounded(t *testing.T) {
	for name, limit := range map[string]struct{ timeout, bound time.Duration }{
		"by the session": {3 * time.Second, 2 * time.Second},
		"by syncLimit":   {30 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				_, others := e.leader()
				s := others[0]
				w := short(t, s, limit.timeout)
				time.Sleep(time.Second)
				var rest []*Server
				for _, o := range e.servers {
					if o != s {
						rest = append(rest, o)
					}
				}
				cut := time.Now()
				e.net.Partition(hosts(s), hosts(rest...))
				defer e.net.Rejoin(hosts(s), hosts(rest...))
				served := w.pinging(50 * time.Millisecond).Sub(cut)
				// The leader's last message may be a tick old, and the last ping 50 ms.
				if served > limit.bound || served < limit.bound-time.Second-50*time.Millisecond {
					t.Errorf("served for %v after the cut, want up to %v", served, limit.bound)
				}
			}, func(c *Config) { c.TickTime = time.Second })
		})
	}
}
