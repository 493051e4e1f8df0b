package lock_test

import (
	"context"
	"maps"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// tallied counts the requests of a recipe that the leader must process.
type tallied struct {
	recipes.Conn
	n map[string]int
}

func (c tallied) Session(ctx context.Context) (recipes.Session, error) {
	s, err := c.Conn.Session(ctx)
	return talliedSession{s, c.n}, err
}

type talliedSession struct {
	recipes.Session
	n map[string]int
}

func (s talliedSession) Create(ctx context.Context, path string, data []byte, mode recipes.Mode, acl []client.ACL) (string, error) {
	s.n["create"]++
	return s.Session.Create(ctx, path, data, mode, acl)
}

func (s talliedSession) Delete(ctx context.Context, path string, version int32) error {
	s.n["delete"]++
	return s.Session.Delete(ctx, path, version)
}

func (s talliedSession) Multi(ctx context.Context, ops ...recipes.Op) error {
	s.n["multi"]++
	return s.Session.Multi(ctx, ops...)
}

func (s talliedSession) Sync(ctx context.Context, path string) error {
	s.n["sync"]++
	return s.Session.Sync(ctx, path)
}

// TestCost checks that a lock sends no unnecessary writes, because each write waits
// for the disks of a quorum.
func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		acquire func(ctx context.Context, conn recipes.Conn) (*lock.Lease, error)
		want    map[string]int
	}{
		"mutex": {func(ctx context.Context, conn recipes.Conn) (*lock.Lease, error) {
			return lock.NewMutex(conn, "/m").Acquire(ctx)
		}, map[string]int{"create": 1, "delete": 1}},
		"simple": {func(ctx context.Context, conn recipes.Conn) (*lock.Lease, error) {
			return lock.NewSimple(conn, "/s").Acquire(ctx)
		}, map[string]int{"create": 1, "delete": 1}},
		"lease": {func(ctx context.Context, conn recipes.Conn) (*lock.Lease, error) {
			return lock.NewLeaseLock(conn, "/l").Acquire(ctx)
		}, map[string]int{"create": 1, "multi": 1, "delete": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				conn, _ := on(t, zs)
				tally := map[string]int{}
				for range 2 { // the first round also creates directories
					clear(tally)
					l := must.Get(c.acquire(rig.Within(t), tallied{conn, tally}))(t)
					must.Do(t, l.Release(rig.Within(t)))
				}
				if !maps.Equal(tally, c.want) {
					t.Errorf("%v instead of %v", tally, c.want)
				}
				rig.NoWatches(t, zs)
			})
		})
	}
}
