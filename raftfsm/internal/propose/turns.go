package propose

// turn identifies a participant in the fair queue: a server by its id, or ownTurn.
type turn int

// ownTurn is this server itself.
const ownTurn turn = -1

// turns shares the proposer fairly among the servers by bytes: the server that has had
// the fewest bytes is next. A server that had nothing to send gains no credit for that:
// it continues where the others are.
type turns struct {
	bytes map[turn]uint64
	now   uint64 // bytes that the last server had had when it was chosen
}

// next returns the server whose turn it is among the waiting ones.
func (t *turns) next(waiting []turn) turn {
	if t.bytes == nil {
		t.bytes = make(map[turn]uint64)
	}
	best := waiting[0]
	for _, origin := range waiting {
		t.bytes[origin] = max(t.bytes[origin], t.now)
		if had, least := t.bytes[origin], t.bytes[best]; had < least || had == least && origin < best {
			best = origin
		}
	}
	t.now = t.bytes[best]
	return best
}

// had records the bytes that a server got in its turn.
func (t *turns) had(origin turn, bytes int) { t.bytes[origin] += uint64(bytes) }
