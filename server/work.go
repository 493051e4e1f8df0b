package server

import (
	"github.com/zkgo/zkgo/raftfsm"
)

// work is what a reader needs while it handles the requests that have arrived.
// It is lent to busy connections, so that an idle one does without.
type work struct {
	replies *buffer // of the requests answered here, not yet in the output
	locked  bool    // the reader holds the tree's read lock
	n       int     // requests answered since the lock was taken
	got     int     // requests read since the counters were brought up to date
	bytes   int     // of requests, since then
	done    int     // requests answered here since then
	last    lastRequest
	sizes   replySizes
	reads   tally
	zxid    int64 // in the latest reply
	cmd     raftfsm.Command
	writer  *rawWriter
}

// getWork gives c a work unless it has one.
func (s *Server) getWork(c *conn) *work {
	if c.work == nil {
		w, ok := s.works.Get().(*work)
		if !ok {
			w = &work{writer: newRawWriter()}
		}
		c.work = w
	}
	return c.work
}

// putWork takes c's back.
func (s *Server) putWork(c *conn) {
	w := c.work
	if w == nil {
		return
	}
	c.work = nil
	s.bufs.put(w.replies)
	*w = work{reads: w.reads, writer: w.writer} // empty, but where it was added up last
	s.works.Put(w)
}
