package raftfsm

import (
	"fmt"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"sync"
)

// maxLaneBytes bounds the queue of one other server, in bytes. Above it, the leader
// stops reading from that server's stream, which makes that server wait. Each server
// has its own connection, so that delays no other server.
const maxLaneBytes = 4 << 20

// remoteRuns holds the runs that other servers sent to this leader, in one lane per
// server.
type remoteRuns struct {
	backlog  *backlog
	checkers *command.Checkers

	mu          sync.Mutex
	room        sync.Cond // a lane shrank or the incarnation ended; uses mu
	incarnation uint64    // 0 while no runs are accepted
	lanes       map[uint8]*lane
}

// lane is the queue of one server, oldest run first.
type lane struct {
	runs   [][]byte
	bytes  int // in runs
	weight int // of runs
}

func newRemoteRuns(waits *backlog, checkers *command.Checkers) *remoteRuns {
	q := &remoteRuns{backlog: waits, checkers: checkers, lanes: make(map[uint8]*lane)}
	q.room.L = &q.mu
	return q
}

// open starts accepting runs that were sent to the incarnation.
func (q *remoteRuns) open(incarnation uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incarnation = incarnation
}

// close drops all runs and accepts no more.
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

// add queues one encoded run that server origin sent to an incarnation of this leader.
// It blocks while that server has too many bytes queued. It does not retain the slice.
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

// waiting appends the servers that have runs queued.
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

// take is like intake.take, but for one server.
func (q *remoteRuns) take(origin uint8, dst []byte, ops int) ([]byte, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[origin]
	if l == nil || len(l.runs) == 0 {
		return dst, 0
	}
	var h command.RunHeader
	if _, _, err := h.Decode(l.runs[0]); err != nil { // add has checked it
		return dst, 0
	}
	if ops > 0 && (ops+int(h.Count) > maxBatchOps || len(dst)+len(l.runs[0]) > maxBatchBytes) {
		return dst, 0
	}
	dst = append(dst, l.runs[0]...)
	l.bytes -= len(l.runs[0])
	w := weight(int(h.Count), len(l.runs[0]))
	l.weight -= w
	q.backlog.taken(w)
	q.room.Broadcast()
	l.runs[0] = nil
	l.runs = l.runs[1:]
	return dst, int(h.Count)
}

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

// checkRun checks that every server can decode the run. A run in the log that can't be
// decoded would stop all of them. checkRun returns the number of commands.
func (q *remoteRuns) checkRun(origin uint8, encoded []byte) (int, error) {
	var h command.RunHeader
	b, rest, err := h.Decode(encoded)
	switch {
	case err != nil:
		return 0, err
	case len(rest) != 0:
		return 0, fmt.Errorf("%d bytes behind it", len(rest))
	case h.Server != origin:
		return 0, fmt.Errorf("it names server %d", h.Server)
	}
	c := q.checkers.Get()
	defer q.checkers.Put(c)
	return int(h.Count), c.Commands(b, h.Count)
}
