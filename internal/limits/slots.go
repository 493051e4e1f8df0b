package limits

import (
	"slices"
	"sync"
)

// Slots bounds how many requests are processed at the same time. H is the server's handle of
// a client. Clients wait in a queue and get slots in order of arrival. However much a client
// sends, only one of its requests is in the queue.
type Slots[H comparable] struct {
	// Free has a capacity of 1 and signals that a slot is free and a client waits.
	Free chan struct{}

	most    int
	mu      sync.Mutex
	taken   int
	waiting []H
}

// NewSlots returns Slots for the given number of requests.
func NewSlots[H comparable](most int) *Slots[H] {
	return &Slots[H]{Free: make(chan struct{}, 1), most: most}
}

// Enter assigns a slot to a client's request, or queues the client.
func (s *Slots[H]) Enter(client H) (now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 && s.taken < s.most {
		s.taken++
		return true
	}
	s.waiting = append(s.waiting, client)
	return false
}

// Release returns a slot.
func (s *Slots[H]) Release() {
	s.mu.Lock()
	s.taken--
	waits := len(s.waiting) > 0
	s.mu.Unlock()
	if waits {
		select {
		case s.Free <- struct{}{}:
		default:
		}
	}
}

// Next gives a free slot to the first client in the queue. It returns false if there is no
// slot or no client.
func (s *Slots[H]) Next() (client H, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.taken >= s.most {
		return client, false
	}
	client = s.waiting[0]
	s.waiting = s.waiting[1:]
	s.taken++
	return client, true
}

// Leave removes a client from the queue. It returns false if the client isn't queued any
// more, because it got a slot.
func (s *Slots[H]) Leave(client H) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, client)
	if i < 0 {
		return false
	}
	s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
	return true
}

// Taken returns how many slots are in use.
func (s *Slots[H]) Taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Waiting returns the clients in the queue.
func (s *Slots[H]) Waiting() []H {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.waiting)
}
