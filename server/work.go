package server

import (
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/poller"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// work is what a reader needs while it handles the requests that have arrived. Only
// busy connections have one, from a pool.
type work struct {
	replies *buffer // to requests answered here, not yet in the output
	locked  bool    // the reader holds the tree's read lock
	n       int     // requests answered since the lock was taken
	got     int     // requests read since the last update of the counters
	bytes   int     // of these requests
	done    int     // requests answered here since then
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
	s.pools.put(w.replies)
	*w = work{reads: w.reads, writer: w.writer, requests: w.requests} // the tally keeps its namespaces
	s.pools.works.Put(w)
}
