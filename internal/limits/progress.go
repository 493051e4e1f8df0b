package limits

import "time"

// A client that reads slowly is alive although the server hears nothing from it: its
// requests stay in its socket while its reader waits for the client to read a reply. It
// shows life when it reads output, and when more of its input arrives.

// A client is closed if it reads less than StallBytes within StallLimit although more than
// that is queued, whatever it sends: otherwise it could occupy memory for as long as it
// likes.
const (
	StallBytes = 64 << 10
	StallLimit = 2 * time.Minute
)

// Progress tracks the signs of life of a silent or slow client. Only one goroutine may use
// it.
type Progress struct {
	looked bool
	taken  int64 // bytes that the client had read at the latest check
	inbox  int   // bytes in its socket that the server had not read at that time
	mark   int64 // taken when the client had last read StallBytes more
	since  int64 // clock of mark
}

// Look reports whether the client has shown life since the latest check, and whether it has
// stalled. waiting is how many bytes it has yet to read.
func (p *Progress) Look(now, taken int64, inbox, waiting int) (alive, stalled bool) {
	if !p.looked {
		*p = Progress{looked: true, taken: taken, inbox: inbox, mark: taken, since: now}
		return false, false
	}
	alive = taken > p.taken || inbox > p.inbox
	p.taken, p.inbox = taken, inbox
	if taken-p.mark >= StallBytes || waiting < StallBytes {
		p.mark, p.since = taken, now
	}
	return alive, now-p.since > int64(StallLimit)
}
