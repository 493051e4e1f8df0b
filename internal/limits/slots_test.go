package limits

import "testing"

// Clients should get slots in the order of their arrival.
func TestTheLine(t *testing.T) {
	t.Parallel()
	s := NewSlots[int](2)
	for client := range 5 {
		if now := s.Enter(client); now != (client < 2) {
			t.Errorf("client %d has a slot: %v", client, now)
		}
	}
	if _, ok := s.Next(); ok {
		t.Error("a client got a slot although none is free")
	}
	s.Release()
	if s.Enter(0) {
		t.Error("a returning client overtook the queue")
	}
	if !s.Leave(3) || s.Leave(3) {
		t.Error("leaving works once")
	}
	s.Release()
	for i, want := range []int{2, 4, -1} {
		got, ok := s.Next()
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("slot %d went to client %d", i, got)
		}
	}
	if len(s.Free) != 1 {
		t.Error("no signal of the free slots")
	}
}
