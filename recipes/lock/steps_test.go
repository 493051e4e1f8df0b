package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func otherConn(e *steps.Env) recipes.Conn { return recipes.On(e.Other) }

// free fails unless another client can soon get the mutex at path and the mutex leaves no
// znodes afterwards.
func free(e *steps.Env, path string) {
	e.Helper()
	l, err := lock.NewMutex(otherConn(e), path).Acquire(e.Bounded())
	if err != nil {
		e.Errorf("no client can get the lock afterwards: %v", err)
		return
	}
	if err := l.Release(e.Bounded()); err != nil {
		e.Errorf("release: %v", err)
	}
	time.Sleep(5 * time.Second) // for the work in the background
	synctest.Wait()
	if names := rig.Children(e.Server, path); len(names) != 0 {
		e.Errorf("left behind: %v", names)
	}
	if w := e.Server.Watches(); len(w) != 0 {
		e.Errorf("watches are left: %v", w)
	}
}

// Locks made of other locks should release all parts, and the Simple lock should leave no
// znode.
func TestCompoundsAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(e *steps.Env) (lock.Held, error){
		"multi": func(e *steps.Env) (lock.Held, error) {
			m := lock.NewMulti(lock.NewMutex(e.Conn, "/a"), lock.NewRWMutex(e.Conn, "/b").Writer(), lock.NewMutex(e.Conn, "/c"))
			return held(m.Acquire(e.Ctx))
		},
		"quorum": func(e *steps.Env) (lock.Held, error) {
			q := lock.NewQuorum(5*time.Second, time.Second, lock.NewMutex(e.Conn, "/a"), lock.NewMutex(e.Conn, "/b"), lock.NewMutex(e.Conn, "/c"))
			return held(q.Acquire(e.Ctx))
		},
		"simple": func(e *steps.Env) (lock.Held, error) { return held(lock.NewSimple(e.Conn, "/s").Acquire(e.Ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps.Each(t, nil, func(e *steps.Env) {
				h, err := take(e)
				switch {
				case err == nil:
					_ = h.Release(e.Ctx)
				case !e.Canceled():
					e.Errorf("acquire: %v", err)
				}
				for _, path := range []string{"/a", "/b", "/c"} {
					free(e, path)
				}
				time.Sleep(5 * time.Second) // for the work in the background
				if e.Server.Exists("/s") {
					e.Error("the simple lock is left behind")
				}
			})
		})
	}
}

// held converts the result of an Acquire to the common interface.
func held[H lock.Held](h H, err error) (lock.Held, error) { return h, err }
