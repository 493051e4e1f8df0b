package propose

// participant is a server in the fair queue, identified by its id, or self.
type participant int

// self is this server itself.
const self participant = -1

// fairQueue shares the proposer fairly among the servers by bytes: the server that has had
// the fewest bytes is next. A server that had nothing to send gains no credit for that:
// it continues where the others are.
type fairQueue struct {
	bytes map[participant]uint64
	now   uint64 // bytes that the last server had had when it was chosen
}

// next returns the waiting server that has the next turn.
func (f *fairQueue) next(waiting []participant) participant {
	if f.bytes == nil {
		f.bytes = make(map[participant]uint64)
	}
	best := waiting[0]
	for _, origin := range waiting {
		f.bytes[origin] = max(f.bytes[origin], f.now)
		if had, least := f.bytes[origin], f.bytes[best]; had < least || had == least && origin < best {
			best = origin
		}
	}
	f.now = f.bytes[best]
	return best
}

// took records the bytes that a server got in its turn.
func (f *fairQueue) took(origin participant, bytes int) { f.bytes[origin] += uint64(bytes) }
