package propose

import (
	"errors"
	"fmt"
	"sync"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// maxPeerBytes bounds the queue of one other server, in bytes. Above it, the leader stops
// reading from that server's stream, so that the server must wait. Each server has its
// own connection, so we don't delay other servers.
const maxPeerBytes = 4 << 20

// RemoteRuns queues the runs that other servers sent to this leader, in one queue per
// server.
type RemoteRuns struct {
	backlog  *Backlog
	checkers *command.Checkers

	mu          sync.Mutex
	freed       sync.Cond // a queue shrank or the incarnation ended; uses mu
	incarnation uint64    // 0 while no runs are accepted
	peers       map[uint8]*peerQueue
}

// peerQueue is the queue of one server, oldest run first.
type peerQueue struct {
	runs   [][]byte
	bytes  int // in runs
	weight int // of runs
}

// NewRemoteRuns returns an empty queue. waits counts the runs in it.
func NewRemoteRuns(waits *Backlog, checkers *command.Checkers) *RemoteRuns {
	q := &RemoteRuns{backlog: waits, checkers: checkers, peers: make(map[uint8]*peerQueue)}
	q.freed.L = &q.mu
	return q
}

// Open starts accepting runs that were sent to the incarnation.
func (q *RemoteRuns) Open(incarnation uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incarnation = incarnation
}

// Close drops all runs and accepts no more.
func (q *RemoteRuns) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incarnation = 0
	for _, l := range q.peers {
		q.backlog.taken(l.weight)
	}
	clear(q.peers)
	q.freed.Broadcast()
}

// Add queues one encoded run that server origin sent to an incarnation of this leader.
// It blocks while that server has too many bytes queued. It does not retain the slice.
func (q *RemoteRuns) Add(incarnation uint64, origin uint8, encoded []byte) error {
	n, err := q.CheckRun(origin, encoded)
	if err != nil {
		return fmt.Errorf("run from server %d: %w", origin, err)
	}
	q.mu.Lock()
	for q.incarnation == incarnation && q.peer(origin).bytes > maxPeerBytes {
		q.freed.Wait()
	}
	if q.incarnation == 0 || q.incarnation != incarnation {
		q.mu.Unlock()
		return ErrNewLeader
	}
	l := q.peer(origin)
	l.runs = append(l.runs, append([]byte(nil), encoded...))
	l.bytes += len(encoded)
	w := weight(n, len(encoded))
	l.weight += w
	q.mu.Unlock()
	q.backlog.add(w)
	return nil
}

func (q *RemoteRuns) peer(origin uint8) *peerQueue {
	l := q.peers[origin]
	if l == nil {
		l = new(peerQueue)
		q.peers[origin] = l
	}
	return l
}

// waiting appends the servers that have runs queued.
func (q *RemoteRuns) waiting(dst []participant) []participant {
	q.mu.Lock()
	defer q.mu.Unlock()
	for origin, l := range q.peers {
		if len(l.runs) > 0 {
			dst = append(dst, participant(origin))
		}
	}
	return dst
}

// take is like LocalRuns.Take, but for one server.
func (q *RemoteRuns) take(origin uint8, dst []byte, ops int) ([]byte, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.peers[origin]
	if l == nil || len(l.runs) == 0 {
		return dst, 0
	}
	var h command.RunHeader
	if _, _, err := h.Decode(l.runs[0]); err != nil { // add has checked it
		return dst, 0
	}
	if ops > 0 && (ops+int(h.Count) > MaxBatchOps || len(dst)+len(l.runs[0]) > MaxBatchBytes) {
		return dst, 0
	}
	dst = append(dst, l.runs[0]...)
	l.bytes -= len(l.runs[0])
	w := weight(int(h.Count), len(l.runs[0]))
	l.weight -= w
	q.backlog.taken(w)
	q.freed.Broadcast()
	l.runs[0] = nil
	l.runs = l.runs[1:]
	return dst, int(h.Count)
}

// CheckRun checks that every server can decode the run. A run in the log that can't be
// decoded would stop all servers. CheckRun returns the number of commands.
func (q *RemoteRuns) CheckRun(origin uint8, encoded []byte) (int, error) {
	var h command.RunHeader
	b, rest, err := h.Decode(encoded)
	switch {
	case err != nil:
		return 0, err
	case len(rest) != 0:
		return 0, fmt.Errorf("%d bytes after it", len(rest))
	case h.Server != origin:
		return 0, fmt.Errorf("it names server %d", h.Server)
	}
	c := q.checkers.Get()
	defer q.checkers.Put(c)
	return int(h.Count), c.Commands(b, h.Count)
}

// ErrNewLeader is the reason for giving up commands when another leadership starts.
var ErrNewLeader = errors.New("another leadership has begun")
