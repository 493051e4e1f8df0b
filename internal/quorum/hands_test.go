package quorum

import (
	"sync"
	"testing"
	"testing/synctest"
)

// TestHands: all functions run, concurrently where necessary, on idle workers if there
// are any, and no worker is left in the end.
func TestHands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		h := hands{done: done}
		var mu sync.Mutex
		count := 0
		for _, together := range []int{1, 1, 3, 2 * maxFree, 1} {
			release := make(chan struct{})
			for range together {
				h.do(func() {
					<-release
					mu.Lock()
					defer mu.Unlock()
					count++
				})
			}
			close(release)
			synctest.Wait()
		}
		if want := 1 + 1 + 3 + 2*maxFree + 1; count != want {
			t.Errorf("%d things done of %d", count, want)
		}
		if got := len(h.free); got != maxFree {
			t.Errorf("%d are free, want %d", got, maxFree)
		}
		release := make(chan struct{})
		h.do(func() { <-release; count++ })
		close(done)
		close(release)
		h.wg.Wait()
		if want := 1 + 1 + 3 + 2*maxFree + 1 + 1; count != want {
			t.Errorf("%d things done of %d when the end came", count, want)
		}
	})
}

// TestHandsAreUsedAgain: an idle worker gets the next function.
func TestHandsAreUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		h := hands{done: done}
		for range 10 {
			h.do(func() {})
			synctest.Wait()
			if len(h.free) != 1 {
				t.Fatalf("%d are free, want 1", len(h.free))
			}
		}
		close(done)
		h.wg.Wait()
	})
}
