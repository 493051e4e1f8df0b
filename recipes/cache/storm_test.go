package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// Whatever happens to the connection and the session while the tree changes, the cache and
// a reader of its changes should end up with the same contents as the server.
func TestStorms(t *testing.T) {
	for name, opts := range kinds {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, zs *zktest.Server) { storm(t, zs, seed, opts) })
			})
		}
	}
}

func storm(t *testing.T, zs *zktest.Server, seed uint64, opts []cache.Option) {
	ctx, stop := context.WithCancel(rig.Within(t))
	defer stop()
	random := rand.New(rand.NewPCG(seed, 1))
	depth := []int{0, 1, 2, 9}[random.IntN(4)]
	if seed%2 == 0 {
		depth = 9
	}
	cl, writer := zs.Client(t), zs.Client(t)
	// We allow few requests in flight, so that reads and events can overtake each other.
	conn := tardy{recipes.On(cl), func() { time.Sleep(time.Duration(rand.IntN(4)*rand.IntN(20)) * time.Millisecond) }}
	c := cache.NewTree(conn, "/r", append(opts, cache.WithDepth(depth), cache.WithInFlight(1+random.IntN(6)), cache.WithBuffer(20))...)
	defer c.Close()
	quick, slow := follow(ctx, c, 0), follow(ctx, c, 50*time.Millisecond)
	for round := range 40 { // we would only see the last error
		for range 10 {
			change(ctx, writer, random)
			disturb(zs, cl, random)
			switch random.IntN(8) {
			case 0:
				synctest.Wait()
			case 1:
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
		}
		time.Sleep(2 * time.Minute)
		must.Do(t, c.Wait(ctx))
		time.Sleep(5 * time.Second)
		what := fmt.Sprintf("round %d, depth %d", round, depth)
		want := below(zs, "/r", depth)
		same(t, what+": cache", held(c), want)
		for who, r := range map[string]*replica{"quick": quick, "slow": slow} {
			nodes, _ := r.state()
			same(t, what+": "+who+" reader", nodes, want)
			for _, b := range r.bad {
				t.Error(b)
			}
		}
	}
	c.Close()
	rig.NoWatches(t, zs)
}

// change makes a random change to the tree.
func change(ctx context.Context, c *client.Client, random *rand.Rand) {
	path := "/r"
	for range random.IntN(4) {
		path = recipe.Join(path, string(rune('a'+random.IntN(3))))
	}
	switch random.IntN(6) {
	case 0:
		_ = c.DeleteAll(ctx, path)
	case 1: // deleted and immediately created again
		_ = c.DeleteAll(ctx, path)
		_, _ = c.Create(ctx, path, []byte(fmt.Sprint(random.Uint32())), client.CreateParents)
	case 2, 3:
		_, _ = c.Set(ctx, path, []byte(fmt.Sprint(random.Uint32())), client.AnyVersion)
	default:
		_, _ = c.Create(ctx, path, []byte(fmt.Sprint(random.Uint32())), client.CreateParents)
	}
}

// disturb sometimes injects a fault into the cache's client.
func disturb(zs *zktest.Server, c *client.Client, random *rand.Rand) {
	id := c.Session().ID
	if id == 0 {
		return
	}
	m := zktest.Match{Session: id, Nth: 1 + random.IntN(3)}
	switch random.IntN(40) {
	case 0:
		zs.DropConnections()
	case 1:
		if slices.ContainsFunc(zs.Sessions(), func(s zktest.Session) bool { return s.ID == id }) {
			zs.ExpireSession(id)
		}
	case 2:
		zs.LoseReply(m)
	case 3:
		zs.LoseNext(m)
	case 4, 5, 6:
		zs.DelayNext(m, time.Duration(random.IntN(200))*time.Millisecond)
	}
}
