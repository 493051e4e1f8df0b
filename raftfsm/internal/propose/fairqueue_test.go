package propose

import (
	"testing"
)

// TestTurnsOfServer0: a leader should share its log fairly between its own clients and
// the clients of a follower with id 0.
func TestTurnsOfServer0(t *testing.T) {
	var u fairQueue
	had := make(map[participant]int)
	for range 6 {
		next := u.next([]participant{0, self})
		u.took(next, 100)
		had[next]++
	}
	if had[0] != 3 || had[self] != 3 {
		t.Errorf("turns %v, want 3 of each", had)
	}
}
