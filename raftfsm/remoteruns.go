package raftfsm

import (
	"fmt"
	"sync"
)

// maxLaneBytes is what may wait of one other server. Nothing more is read from
// its stream then, so that it is the one that has to wait: every server has a
// connection of its own, and what is not read on that holds up nobody else.
const maxLaneBytes = 4 << 20

// remoteRuns holds the runs that other servers sent to this one, which leads:
// a lane for each server.
type remoteRuns struct {
	backlog  *backlog
	checkers entryCheckers

	mu          sync.Mutex
	room        sync.Cond // bytes of a lane went down or the incarnation ended; uses mu
	incarnation uint64    // 0 while nothing is taken
	lanes       map[uint8]*lane
}

// lane is what waits of one server, the oldest run first.
type lane struct {
	runs   [][]byte
	bytes  int // in runs
	weight int // of runs
}

func newRemoteRuns(waits *backlog) *remoteRuns {
	q := &remoteRuns{backlog: waits, lanes: make(map[uint8]*lane)}
	q.room.L = &q.mu
	return q
}

// open lets runs in that were sent to the incarnation.
func (q *remoteRuns) open(incarnation uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incarnation = incarnation
}

// close drops everything and lets nothing more in.
func (q *remoteRuns) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incarnation = 0
	for _, l := range q.lanes {
		q.backlog.taken(l.weight)
	}
	clear(q.lanes)
	q.room.Broadcast()
}

// add takes one encoded run that server origin sent to an incarnation of this
// leader. It blocks while too much of that server waits. It does not keep the
// slice.
func (q *remoteRuns) add(incarnation uint64, origin uint8, encoded []byte) error {
	n, err := q.checkRun(origin, encoded)
	if err != nil {
		return fmt.Errorf("run from server %d: %w", origin, err)
	}
	q.mu.Lock()
	for q.incarnation == incarnation && q.lane(origin).bytes > maxLaneBytes {
		q.room.Wait()
	}
	if q.incarnation == 0 || q.incarnation != incarnation {
		q.mu.Unlock()
		return errNewLeader
	}
	l := q.lane(origin)
	l.runs = append(l.runs, append([]byte(nil), encoded...))
	l.bytes += len(encoded)
	w := weight(n, len(encoded))
	l.weight += w
	q.mu.Unlock()
	q.backlog.add(w)
	return nil
}

func (q *remoteRuns) lane(origin uint8) *lane {
	l := q.lanes[origin]
	if l == nil {
		l = new(lane)
		q.lanes[origin] = l
	}
	return l
}

// waiting appends the servers of which something waits.
func (q *remoteRuns) waiting(dst []turn) []turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	for origin, l := range q.lanes {
		if len(l.runs) > 0 {
			dst = append(dst, turn(origin))
		}
	}
	return dst
}

// take is like intake.take, for one server.
func (q *remoteRuns) take(origin uint8, dst []byte, ops int) ([]byte, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[origin]
	if l == nil || len(l.runs) == 0 {
		return dst, 0
	}
	var h runHeader
	if _, _, err := h.decode(l.runs[0]); err != nil { // add has checked it
		return dst, 0
	}
	if ops > 0 && (ops+int(h.count) > maxBatchOps || len(dst)+len(l.runs[0]) > maxBatchBytes) {
		return dst, 0
	}
	dst = append(dst, l.runs[0]...)
	l.bytes -= len(l.runs[0])
	w := weight(int(h.count), len(l.runs[0]))
	l.weight -= w
	q.backlog.taken(w)
	q.room.Broadcast()
	l.runs[0] = nil
	l.runs = l.runs[1:]
	return dst, int(h.count)
}

// turn is one of those that take turns: a server by its id, or ownTurn.
type turn int

// ownTurn stands for this server itself among those that take turns.
const ownTurn turn = -1

// turns shares the proposer among the servers by bytes: next is always the one
// that has had least. A server that had nothing to send does not save it up: it
// goes on where the others are.
type turns struct {
	bytes map[turn]uint64
	now   uint64 // what the one whose turn it was last had had by then
}

// next returns whose turn it is among those that wait.
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

// had notes what the server whose turn it was has got.
func (t *turns) had(origin turn, bytes int) { t.bytes[origin] += uint64(bytes) }

// checkRun says whether every server will be able to take the run apart. One
// that got into the log and cannot be would stop them all. It returns how many
// commands there are.
func (q *remoteRuns) checkRun(origin uint8, encoded []byte) (int, error) {
	var h runHeader
	b, rest, err := h.decode(encoded)
	switch {
	case err != nil:
		return 0, err
	case len(rest) != 0:
		return 0, fmt.Errorf("%d bytes behind it", len(rest))
	case h.server != origin:
		return 0, fmt.Errorf("it names server %d", h.server)
	}
	c := q.checkers.get()
	defer q.checkers.put(c)
	return int(h.count), c.commands(b, h.count)
}
