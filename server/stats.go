package server

import (
	"sync/atomic"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/proto"
)

// stats are the server's counters. Times are in nanoseconds.
type stats struct {
	received, sent         atomic.Int64
	latencyN, latencySum   atomic.Int64
	latencyMin, latencyMax atomic.Int64 // min holds the value plus 1, so that 0 is none
	rejected               atomic.Int64 // connections over a limit
	dropped                atomic.Int64 // connections closed because the client didn't read
	watchesRefused         atomic.Int64
	expired                atomic.Int64 // connections closed because they were silent
	authFailed             atomic.Int64
	handshaking            atomic.Int64 // connections in a TLS handshake
	handshakesFailed       atomic.Int64
	lastReply, minReply    atomic.Int64 // bytes; 0 before the first
	maxReply               atomic.Int64
	connects               atomic.Int64 // handshakes
	revalidated            atomic.Int64 // of these, for an existing session
	commits                atomic.Int64 // transactions applied
	bytesIn, bytesOut      atomic.Int64 // of requests and their replies, without length fields
	bytesEvents            atomic.Int64 // of notifications
	staleReplies           atomic.Int64 // for connections that were already closed
	turnedAway             atomic.Int64 // clients that connected while the server couldn't serve them
	seenLater              atomic.Int64 // clients that have seen a later state
	unproved               atomic.Int64 // sessions that have ended, or got a wrong password
	unauthenticated        atomic.Int64 // requests of clients that had to authenticate first
	malformed              atomic.Int64 // clients that didn't speak the protocol
	readOnlyRefused        atomic.Int64 // sessions that couldn't begin in read-only mode
	ensembleSkip           atomic.Int64 // counts of the scheme ensemble
	ensembleSuccess        atomic.Int64
	ensembleFail           atomic.Int64
	asked                  atomic.Int64 // of revalidated: on a server that doesn't lead
	snapshotErrors         atomic.Int64 // of the AdminServer, like the following
	snapshotsTooEarly      atomic.Int64
	restoreErrors          atomic.Int64
	restoresTooEarly       atomic.Int64
	restores               histogram.Summary // durations of successful restores
	syncs                  atomic.Int64      // in flight
	largeRejected          atomic.Int64      // large requests refused
	throttleWaits          atomic.Int64      // requests that waited for a slot
	staleDropped           atomic.Int64      // of these, dropped with their connections
	throttledOps           atomic.Int64      // answered with ThrottledOp
	throttleQueue          histogram.Summary // how long requests waited for a slot
	tokenDeficit           histogram.Summary // tokens in use when a session began
	reads, updates         histogram.Summary
	waited                 histogram.Summary    // reads queued after a write of their session
	queued                 histogram.Summary    // length of a session's queue when one of its requests completed
	behind                 histogram.Summary    // reads answered together with the write before them
	unavailable            histogram.Summary    // from the end of service until the server serves again
	leaderless             histogram.Summary    // the same, if the server then leads
	syncTimes, obsSyncs    histogram.Summary    // from finding a leader until serving, as follower and as observer
	elections              histogram.Summary    // how long the search for a leader took
	looking                atomic.Int64         // searches for a leader begun
	watchers               [4]histogram.Summary // watchers per event, by event type − 1
}

// fired counts the watchers of one event.
func (st *stats) fired(typ proto.EventType, n int) {
	if i := int(typ) - 1; n > 0 && i >= 0 && i < len(st.watchers) {
		st.watchers[i].Observe(1, int64(n))
	}
}

// latency counts n requests that took d each. The sum is of whole milliseconds, like
// the printed minimum and maximum, so that the average lies between them as in
// ZooKeeper.
func (st *stats) latency(n, d int64) {
	st.latencyN.Add(n)
	st.latencySum.Add(n * (d / millisecond))
	if m := st.latencyMin.Load(); m == 0 || d+1 < m {
		st.latencyMin.CompareAndSwap(m, d+1)
	}
	if m := st.latencyMax.Load(); d > m {
		st.latencyMax.CompareAndSwap(m, d)
	}
}

// reset resets what srst resets.
func (st *stats) reset() {
	for _, v := range []*atomic.Int64{&st.received, &st.sent, &st.latencyN, &st.latencySum, &st.latencyMin, &st.latencyMax,
		&st.snapshotErrors, &st.snapshotsTooEarly, &st.restoreErrors, &st.restoresTooEarly, &st.bytesIn, &st.bytesOut, &st.bytesEvents, &st.staleReplies, &st.turnedAway, &st.asked,
		&st.lastReply, &st.minReply, &st.maxReply, &st.connects, &st.revalidated, &st.commits, &st.looking} {
		v.Store(0)
	}
	for _, m := range []*histogram.Summary{&st.reads, &st.updates, &st.waited, &st.queued, &st.behind, &st.unavailable, &st.leaderless,
		&st.syncTimes, &st.obsSyncs, &st.elections, &st.restores, &st.watchers[0], &st.watchers[1], &st.watchers[2], &st.watchers[3]} {
		m.Reset()
	}
}

// lastRequest is the latest request, as cons shows it. A negative xid, e.g. a ping's,
// doesn't replace the previous one; −1 means there was none.
type lastRequest struct {
	op  proto.Op
	xid int32
}

// note records h as the latest request.
func (r *lastRequest) note(h proto.RequestHeader) {
	if r.op == 0 {
		r.xid = -1
	}
	r.op = h.Op
	if h.Xid >= 0 {
		r.xid = h.Xid
	}
}

// connCounters are a connection's counters. Times are in nanoseconds.
type connCounters struct {
	recved, sent int64
	last         lastRequest
	lastZxid     int64
	lastResponse int64 // clock
	latencyN     int64
	latencySum   int64
	latencyLast  int64
	latencyMin   int64
	latencyMax   int64
}

// latency counts n requests that took d each.
func (k *connCounters) latency(n, d int64) {
	if k.latencyN == 0 || d < k.latencyMin {
		k.latencyMin = d
	}
	k.latencyMax = max(k.latencyMax, d)
	k.latencyN += n
	k.latencySum += n * d
	k.latencyLast = d
}

// reset resets what crst resets.
func (k *connCounters) reset() { *k = connCounters{last: lastRequest{xid: -1}, lastZxid: -1} }

// count adds the reader's work to the counters; q.mu is held.
func (q *replyQueue) count(w *work) {
	c := q.c
	if w.got == 0 && w.done == 0 {
		return
	}
	st := &c.s.stats
	k := &q.counters
	if w.got > 0 {
		k.recved += int64(w.got)
		st.received.Add(int64(w.got))
		st.bytesIn.Add(int64(w.bytes))
		if w.last.xid < 0 {
			w.last.xid = k.last.xid
		}
		k.last = w.last
	}
	if n := int64(w.done); n > 0 {
		now := c.s.clock()
		k.sent += n
		k.lastResponse = now
		if w.zxid != 0 {
			k.lastZxid = w.zxid
		}
		k.latency(n, now-c.reader.started)
		st.sent.Add(n)
		st.latency(n, now-c.reader.started)
		st.reads.Observe(n, now-c.reader.started)
		st.replySizes(&w.sizes)
	}
	w.reads.flush()
	w.got, w.done, w.bytes = 0, 0, 0
}

// countReceived counts input that isn't a request of a session: a handshake, or a
// four-letter word.
func (q *replyQueue) countReceived(bytes int) {
	q.c.s.stats.received.Add(1)
	q.c.s.stats.bytesIn.Add(int64(bytes))
	q.mu.Lock()
	q.counters.recved++
	q.mu.Unlock()
}

// countLate counts the answer to a queued request; q.mu is held.
func (q *replyQueue) countLate(p *pending, now, zxid int64) {
	c := q.c
	d := max(now-p.arrived, 0)
	q.counters.sent++
	q.counters.lastResponse, q.counters.lastZxid = now, zxid
	q.counters.latency(1, d)
	c.s.stats.latency(1, d)
	if p.inFlight && p.op != proto.OpSync {
		c.s.stats.updates.Observe(1, d)
	} else {
		c.s.stats.reads.Observe(1, d)
		c.s.stats.waited.Observe(1, d)
	}
}

// replySizes holds the payload sizes of some replies; it is zero if there are none.
type replySizes struct{ last, least, most, sum int64 }

// note adds the size of one reply.
func (z *replySizes) note(n int) {
	z.last = int64(n)
	if z.least == 0 || z.last < z.least {
		z.least = z.last
	}
	z.most = max(z.most, z.last)
	z.sum += z.last
}

// replySizes adds z to the counters. Last, minimum and maximum hold the size plus 1, so
// that 0 is none.
func (st *stats) replySizes(z *replySizes) {
	if z.last == 0 {
		return
	}
	st.bytesOut.Add(z.sum)
	st.lastReply.Store(z.last + 1)
	if m := st.minReply.Load(); m == 0 || z.least+1 < m {
		st.minReply.CompareAndSwap(m, z.least+1)
	}
	if m := st.maxReply.Load(); z.most+1 > m {
		st.maxReply.CompareAndSwap(m, z.most+1)
	}
	*z = replySizes{}
}

// Requests returns how many requests the server has read since it started or since the last
// srst. It takes no lock.
func (s *Server) Requests() int64 { return s.stats.received.Load() }
