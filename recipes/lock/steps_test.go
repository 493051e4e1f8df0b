package lock_test

import (
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/rig"
	"github.com/zkgo/zkgo/tests/steps"
)

func otherConn(e *steps.Env) recipes.Conn { return recipes.On(e.Other) }

// free fails unless another can have the mutex at path soon, and then nothing of
// it is left.
func free(e *steps.Env, path string) {
	e.Helper()
	l, err := lock.NewMutex(otherConn(e), path).Acquire(e.Bounded())
	if err != nil {
		e.Errorf("nobody can have the lock afterwards: %v", err)
		return
	}
	if err := l.Release(e.Bounded()); err != nil {
		e.Errorf("release: %v", err)
	}
	time.Sleep(5 * time.Second) // for what is done in the background
	synctest.Wait()
	if names := rig.Children(e.Server, path); len(names) != 0 {
		e.Errorf("left behind: %v", names)
	}
	if w := e.Server.Watches(); len(w) != 0 {
		e.Errorf("watches are left: %v", w)
	}
}
