package peers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/barrier"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/tools"
)

// barrierMember is a member of a double barrier: say begins a step, "enter" or "leave",
// and hear waits until the step is done.
type barrierMember struct {
	say  func(step string)
	hear func(answer string) error
}

// TestDoubleBarrier makes members in Go, Java and Python enter and leave one round together,
// whichever member comes last.
func TestDoubleBarrier(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	zs := zktest.Run(t)
	found := tools.Find(t)
	java := javaPeer(ctx, t, zs)
	d := barrier.NewDouble(recipes.On(zs.Client(t)), "/barrier", 3)
	done := make(chan error, 1)
	members := map[string]barrierMember{
		"go": {
			say: func(step string) {
				go func() {
					if step == "enter" {
						done <- d.Enter(ctx)
					} else {
						done <- d.Leave(ctx)
					}
				}()
			},
			hear: func(string) error { return <-done },
		},
		"java": {say: func(step string) { java.say(step, "/barrier", "3") }, hear: java.said},
	}
	for _, order := range [][]string{{"go", "java", "python"}, {"python", "go", "java"}, {"java", "python", "go"}} {
		python := start(ctx, t, found.Python, "workers/barrier.py", zs.Addrs()[0], "/barrier", "3")
		members["python"] = barrierMember{say: func(step string) { python.say(step) }, hear: python.said}
		for i, name := range order {
			members[name].say("enter")
			zs.Wait(fmt.Sprintf("%d members have come", i+1), func() bool {
				return zs.Exists("/barrier") && len(zs.Children("/barrier")) > i
			})
		}
		all := func(answer string) {
			for _, name := range order {
				if err := members[name].hear(answer); err != nil {
					t.Fatalf("%v: %s: %v", order, name, err)
				}
			}
		}
		all("entered")
		for _, name := range order {
			members[name].say("leave")
		}
		all("left")
		if n := zs.Children("/barrier"); len(n) != 0 {
			t.Errorf("%v: left over: %v", order, n)
		}
		python.kill()
	}
}

// said returns an error unless the worker's next line is want.
func (w *worker) said(want string) error {
	if line, ok := w.hear(); !ok || line != want {
		return errors.New("it says " + line)
	}
	return nil
}
