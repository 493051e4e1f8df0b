package stats

import (
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/proto"
)

const millisecond = int64(time.Millisecond)

// Server is the set of a server's counters. Times are in nanoseconds.
type Server struct {
	traffic
	refusals
	transfers
	outages
	distributed
}

// traffic counts the server's reads and writes.
type traffic struct {
	Received, Sent         atomic.Int64
	latencyN, latencySum   atomic.Int64
	latencyMin, latencyMax atomic.Int64 // min is the value plus 1, so that 0 is none
	lastReply, minReply    atomic.Int64 // bytes plus 1; 0 before the first
	maxReply               atomic.Int64
	BytesIn, BytesOut      atomic.Int64 // of requests and their replies, without length fields
	BytesEvents            atomic.Int64 // of notifications
	StaleReplies           atomic.Int64 // for connections that were already closed
	Commits                atomic.Int64 // transactions applied
	Syncs                  atomic.Int64 // in flight
	Handshaking            atomic.Int64 // connections in a TLS handshake
	Connects               atomic.Int64 // handshakes
	Revalidated            atomic.Int64 // of these, for an existing session
	Asked                  atomic.Int64 // of revalidated: on a server that doesn't lead
	EnsembleSkip           atomic.Int64 // counts of the scheme ensemble
	EnsembleSuccess        atomic.Int64
}

// refusals counts refused clients and requests.
type refusals struct {
	Rejected         atomic.Int64 // connections over a limit
	Dropped          atomic.Int64 // connections closed because the client didn't read
	Expired          atomic.Int64 // connections closed because they were silent
	WatchesRefused   atomic.Int64
	AuthFailed       atomic.Int64
	HandshakesFailed atomic.Int64
	EnsembleFail     atomic.Int64
	TurnedAway       atomic.Int64 // clients that connected while the server couldn't serve them
	SeenLater        atomic.Int64 // clients that have seen a later state
	Unproved         atomic.Int64 // sessions that have ended, or got a wrong password
	Unauthenticated  atomic.Int64 // requests of clients that had to authenticate first
	Malformed        atomic.Int64 // clients that didn't speak the protocol
	ReadOnlyRefused  atomic.Int64 // sessions that couldn't begin in read-only mode
	LargeRejected    atomic.Int64 // large requests refused
	ThrottleWaits    atomic.Int64 // requests that waited for a slot
	StaleDropped     atomic.Int64 // of these, dropped with their connections
	ThrottledOps     atomic.Int64 // answered with ThrottledOp
}

// transfers counts the AdminServer's commands about the whole state.
type transfers struct {
	SnapshotErrors    atomic.Int64
	SnapshotsTooEarly atomic.Int64
	RestoreErrors     atomic.Int64
	RestoresTooEarly  atomic.Int64
	Restores          histogram.Summary // durations of successful restores
}

// outages measures how long the server looked for a leader and couldn't serve.
type outages struct {
	Unavailable         histogram.Summary // from the end of service until the server serves again
	Leaderless          histogram.Summary // the same, if the server then leads
	SyncTimes, ObsSyncs histogram.Summary // from finding a leader until serving, as follower and as observer
	Elections           histogram.Summary // duration of the search for a leader
	Looking             atomic.Int64      // searches for a leader begun
}

// distributed contains the distributions of latencies and lengths.
type distributed struct {
	Reads, Updates  histogram.Summary
	Waited          histogram.Summary    // reads queued after a write of their session
	Queued          histogram.Summary    // length of a session's queue when one of its requests completed
	ReadsAfterWrite histogram.Summary    // reads answered together with the write before them
	ThrottleQueue   histogram.Summary    // how long requests waited for a slot
	TokenDeficit    histogram.Summary    // tokens in use when a session began
	Watchers        [4]histogram.Summary // watchers per event, by event type − 1
}

// Describe sets in p what the counters say.
func (st *Server) Describe(p *status.Server) {
	p.Received, p.Sent, p.AuthFailed, p.Rejected = st.Received.Load(), st.Sent.Load(), st.AuthFailed.Load(), st.Rejected.Load()
	p.LastReply, p.MinReply, p.MaxReply = st.lastReply.Load()-1, st.minReply.Load()-1, st.maxReply.Load()-1
	p.LatencyMax = st.latencyMax.Load() / millisecond
	if m := st.latencyMin.Load(); m > 0 {
		p.LatencyMin = (m - 1) / millisecond
	}
	if n := st.latencyN.Load(); n > 0 {
		p.LatencyAvg = float64(st.latencySum.Load()) / float64(n)
	}
}

// CountWatchers counts the watchers of one event.
func (st *Server) CountWatchers(typ proto.EventType, n int) {
	if i := int(typ) - 1; n > 0 && i >= 0 && i < len(st.Watchers) {
		st.Watchers[i].Observe(1, int64(n))
	}
}

// CountLatency counts n requests with a latency of d each. The sum is of whole milliseconds,
// like the printed minimum and maximum, so that the average lies between them as in
// ZooKeeper.
func (st *Server) CountLatency(n, d int64) {
	st.latencyN.Add(n)
	st.latencySum.Add(n * (d / millisecond))
	if m := st.latencyMin.Load(); m == 0 || d+1 < m {
		st.latencyMin.CompareAndSwap(m, d+1)
	}
	if m := st.latencyMax.Load(); d > m {
		st.latencyMax.CompareAndSwap(m, d)
	}
}

// Reset resets what srst resets.
func (st *Server) Reset() {
	for _, v := range []*atomic.Int64{&st.Received, &st.Sent, &st.latencyN, &st.latencySum, &st.latencyMin, &st.latencyMax,
		&st.SnapshotErrors, &st.SnapshotsTooEarly, &st.RestoreErrors, &st.RestoresTooEarly, &st.BytesIn, &st.BytesOut, &st.BytesEvents, &st.StaleReplies, &st.TurnedAway, &st.Asked,
		&st.lastReply, &st.minReply, &st.maxReply, &st.Connects, &st.Revalidated, &st.Commits, &st.Looking} {
		v.Store(0)
	}
	for _, m := range []*histogram.Summary{&st.Reads, &st.Updates, &st.Waited, &st.Queued, &st.ReadsAfterWrite, &st.Unavailable, &st.Leaderless,
		&st.SyncTimes, &st.ObsSyncs, &st.Elections, &st.Restores, &st.Watchers[0], &st.Watchers[1], &st.Watchers[2], &st.Watchers[3]} {
		m.Reset()
	}
}

// LastRequest is the latest request, as cons shows it. A negative xid, e.g. a ping's,
// doesn't replace the previous one; −1 means there was none.
type LastRequest struct {
	Op  proto.Op
	Xid int32
}

// Note records h as the latest request.
func (r *LastRequest) Note(h proto.RequestHeader) {
	if r.Op == 0 {
		r.Xid = -1
	}
	r.Op = h.Op
	if h.Xid >= 0 {
		r.Xid = h.Xid
	}
}

// Conn is the set of a connection's counters. Times are in nanoseconds.
type Conn struct {
	Received, Sent int64
	Last           LastRequest
	LastZxid       int64
	LastResponse   int64 // clock
	latencyN       int64
	latencySum     int64
	latencyLast    int64
	latencyMin     int64
	latencyMax     int64
}

// CountLatency counts n requests with a latency of d each.
func (k *Conn) CountLatency(n, d int64) {
	if k.latencyN == 0 || d < k.latencyMin {
		k.latencyMin = d
	}
	k.latencyMax = max(k.latencyMax, d)
	k.latencyN += n
	k.latencySum += n * d
	k.latencyLast = d
}

// Describe sets in p what the counters say.
func (k *Conn) Describe(p *status.Conn) {
	p.Received, p.Sent, p.LastZxid, p.LastResponse = k.Received, k.Sent, k.LastZxid, time.Duration(k.LastResponse)
	p.LastLatency, p.MinLatency, p.MaxLatency = k.latencyLast/millisecond, k.latencyMin/millisecond, k.latencyMax/millisecond
	p.LastOp, p.LastCxid = "NA", -1
	if k.latencyN > 0 {
		p.AvgLatency = k.latencySum / k.latencyN / millisecond
	}
	if k.Last.Op != 0 {
		p.LastOp, p.LastCxid = k.Last.Op.Abbrev(), int64(k.Last.Xid)
	}
}

// Reset resets what crst resets.
func (k *Conn) Reset() { *k = Conn{Last: LastRequest{Xid: -1}, LastZxid: -1} }

// ReplySizes summarizes the payload sizes of some replies; it is zero if there are none.
type ReplySizes struct{ last, least, most, sum int64 }

// Note adds the size of one reply.
func (z *ReplySizes) Note(n int) {
	z.last = int64(n)
	if z.least == 0 || z.last < z.least {
		z.least = z.last
	}
	z.most = max(z.most, z.last)
	z.sum += z.last
}

// CountReplies adds z to the counters. Last, minimum and maximum are the size plus 1, so
// that 0 is none.
func (st *Server) CountReplies(z *ReplySizes) {
	if z.last == 0 {
		return
	}
	st.BytesOut.Add(z.sum)
	st.lastReply.Store(z.last + 1)
	if m := st.minReply.Load(); m == 0 || z.least+1 < m {
		st.minReply.CompareAndSwap(m, z.least+1)
	}
	if m := st.maxReply.Load(); z.most+1 > m {
		st.maxReply.CompareAndSwap(m, z.most+1)
	}
	*z = ReplySizes{}
}
