package recipe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// turn is the znode that serializes the writes of /v at version -1.
const turn = "/v/wrapping-version"

// atMinusOne returns a new client's session in which /v has version -1, and its Stat.
func atMinusOne(t *testing.T, zs *zktest.Server) (recipes.Session, client.Stat) {
	t.Helper()
	s := must.Get(rig.ShiftVersions(recipes.On(zs.Client(t)), -1).Session(rig.Within(t)))(t)
	_, stat, err := s.Get(rig.Within(t), "/v")
	if err != nil || stat.Version != client.AnyVersion {
		t.Fatalf("version %d: %v", stat.Version, err)
	}
	return s, stat
}

// If ctx ends while Replace creates the turn, Replace should delete the turn.
func TestReplaceIsCancelled(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Set("/v", "0")
		s, stat := atMinusOne(t, zs)
		ctx, cancel := context.WithCancel(rig.Within(t))
		slow := zs.DelayNext(zktest.Match{Op: proto.OpCreate, Path: turn}, 10*time.Second)
		failed := make(chan error, 1)
		go func() {
			_, err := recipe.Replace(ctx, s, "/v", []byte("1"), stat)
			failed <- err
		}()
		slow.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		time.Sleep(time.Minute)
		if zs.Exists(turn) {
			t.Fatal("the turn remains")
		}
		must.Get(recipe.Replace(rig.Within(t), s, "/v", []byte("2"), stat))(t)
		if zs.Get("/v") != "2" || zs.Exists(turn) {
			t.Errorf("%s", zs.Dump())
		}
	})
}

// If Replace loses the reply to its delete of the turn, it should not delete the turn of
// the next call.
func TestReplaceDeletesOnlyItsOwnTurn(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/v", "0")
		a, stat := atMinusOne(t, zs)
		b, _ := atMinusOne(t, zs)
		lost := zs.LoseReply(zktest.Match{Op: proto.OpDelete, Path: turn})
		slow := zs.DelayNext(zktest.Match{Op: proto.OpSetData, Path: "/v", Session: b.ID()}, 10*time.Second)
		accept := zs.RefuseConnections()
		_, err := recipe.Replace(ctx, a, "/v", []byte("1"), stat)
		must.Do(t, err)
		lost.Wait()
		zs.Delete("/v") // so that its next version is -1 again
		zs.Set("/v", "0")
		_, stat, err = b.Get(ctx, "/v")
		must.Do(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := recipe.Replace(ctx, b, "/v", []byte("2"), stat)
			done <- err
		}()
		slow.Wait()
		accept()
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if owner := zs.Ephemerals()[turn]; owner != b.ID() {
			t.Errorf("the turn belongs to %#x, not %#x: %s", owner, b.ID(), zs.Dump())
		}
		must.Do(t, <-done)
	})
}
