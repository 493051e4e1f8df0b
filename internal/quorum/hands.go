package quorum

import "sync"

// hands is a pool of worker goroutines for a transport. Sending to a peer takes a larger
// stack than a new goroutine has, and growing a new stack for every entry and every peer
// takes longer than handing the work to a waiting goroutine.
type hands struct {
	wg   sync.WaitGroup
	done <-chan struct{} // the workers stop when it is closed

	mu   sync.Mutex
	free []chan func() // the channels of the idle workers
}

// maxFree bounds the idle workers: they send early entries and commit indexes to a few
// peers.
const maxFree = 16

// do runs f on an idle worker, or on a new one. The caller must not call it after Wait.
func (h *hands) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := len(h.free) - 1; last >= 0 {
		h.free[last] <- f // doesn't block: its buffer is empty
		h.free = h.free[:last]
		return
	}
	h.wg.Go(func() { h.work(f) })
}

// work runs f and then the functions that are handed to this worker.
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
			case f = <-next: // handed over before done was closed
				f()
			default:
			}
			return
		}
	}
}
