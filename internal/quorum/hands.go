package quorum

import "sync"

// hands are goroutines that do one thing after the other for a transport: whatever is
// sent to a peer takes a stack larger than a new goroutine has, and to make that grow
// anew for every entry and every peer takes longer than to hand the work over.
type hands struct {
	wg   sync.WaitGroup
	done <-chan struct{} // nothing is done after that

	mu   sync.Mutex
	free []chan func() // of those that wait for work
}

// maxFree is how many goroutines wait for work at most: what is sent early and what
// follows a commit, to some peers.
const maxFree = 16

// do has f done, by somebody who is free or else by somebody new. It is not called
// behind Wait.
func (h *hands) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := len(h.free) - 1; last >= 0 {
		h.free[last] <- f // has room for it
		h.free = h.free[:last]
		return
	}
	h.wg.Go(func() { h.work(f) })
}

// work does f, and what comes after it.
func (h *hands) work(f func()) {
	next := make(chan func(), 1)
	for {
		f()
		h.mu.Lock()
		if len(h.free) >= maxFree {
			h.mu.Unlock()
			return
		}
		h.free = append(h.free, next)
		h.mu.Unlock()
		select {
		case f = <-next:
		case <-h.done:
			select {
			case f = <-next: // was handed over before
				f()
			default:
			}
			return
		}
	}
}
