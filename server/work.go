package server

import (
	"sync"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/poller"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// work is what a reader needs while it handles the requests that have arrived. Only
// busy connections have one, from a pool.
type work struct {
	replies *buffer.Buffer // to requests answered here, not yet in the output
	locked  bool           // the reader holds the tree's read lock
	n       int            // requests answered since the lock was taken
	got     int            // requests read since the last update of the counters
	bytes   int            // of these requests
	done    int            // requests answered here since then
	last    stats.LastRequest
	sizes   stats.ReplySizes
	reads   stats.Tally
	zxid    int64 // in the latest reply
	cmd     raftfsm.Command
	writer  *poller.Writer

	requests *proto.Requests // for the write being examined
}

// getWork returns r's work and gives r one if it has none.
func (r *reader) getWork() *work {
	if r.work == nil {
		w, ok := r.c.s.pools.works.Get().(*work)
		if !ok {
			w = &work{writer: poller.NewWriter(), requests: new(proto.Requests)}
		}
		r.work = w
	}
	return r.work
}

// putWork returns r's work to the pool.
func (r *reader) putWork() {
	w, s := r.work, r.c.s
	if w == nil {
		return
	}
	r.work = nil
	s.pools.Put(w.replies)
	*w = work{reads: w.reads, writer: w.writer, requests: w.requests} // the tally keeps its namespaces
	s.pools.works.Put(w)
}

// pools hold what busy connections need and idle ones give back.
type pools struct {
	buffer.Pool
	works    sync.Pool // of *work
	pendings sync.Pool // of *pending
}

// pending is a queued request: in flight, or queued after one in flight. A connection's
// queue lists them in the order of the requests.
type pending struct {
	c        *conn
	next     *pending
	inFlight bool // proposed; otherwise it is answered at the head of the queue
	op       proto.Op
	xid      int32
	refuse   proto.Code // not Ok: the answer, regardless of the tree
	arrived  int64      // clock
	ids      []proto.ID
	body     []byte // a copy; a write needs none
	weight   int    // of a read: approximate length of its reply
	connect  *connecting
	charge   charge
}

// maxKeptBody is the largest capacity of a body that a pooled pending keeps.
const maxKeptBody = 512

// newPending returns an empty pending for c.
func (pl *pools) newPending(c *conn, op proto.Op, xid int32) *pending {
	p, ok := pl.pendings.Get().(*pending)
	if !ok {
		p = new(pending)
	}
	p.c, p.op, p.xid, p.arrived = c, op, xid, c.reader.started
	return p
}

// freePending returns p to the pool. The caller must hold the last reference.
func (pl *pools) freePending(p *pending) {
	body := p.body[:0]
	if cap(body) > maxKeptBody {
		body = nil
	}
	*p = pending{body: body}
	pl.pendings.Put(p)
}
