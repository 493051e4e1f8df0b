package raftfsm

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// How a follower's sessions stay alive, and how it knows that they do.
//
// A small connection of its own, so that no command can be in its way, carries
// at least every half tick
//
//	report = seq:8 flags:1 count:3 session:8*
//	ack    = seq:8 index:8
//
// The leader touches the sessions when a report comes in. It acknowledges it
// only once a quorum is known to have followed it at a time after that: then
// nobody else can have expired them by what it knew. The index is what was
// committed when the report came; a follower that has applied it shows nothing
// older than its clients' first contact. A report with the flag is waited for:
// the leader asks for contacts at once. It need not name sessions.

const (
	// reportEvery bounds the time between two reports from above.
	reportEvery = 500 * time.Millisecond
	// maxReport bounds the sessions of one report.
	maxReport = 1<<24 - 1
	// reportUrgent is the flag, in the four bytes of flags and count.
	reportUrgent = 1 << 31
	// reportSize and ackSize are the fixed parts.
	reportSize = 8 + 4
	ackSize    = 8 + 8
	// maxUnacked is how many reports may wait for their acknowledgement.
	maxUnacked = 64
)

// syncLimit is how old the newest contact of a server that serves may be.
func (e *ensemble) syncLimit() time.Duration {
	return time.Duration(e.n.cfg.SyncLimit) * e.n.cfg.TickTime
}

func (e *ensemble) reportInterval() time.Duration { return min(e.n.cfg.TickTime/2, reportEvery) }

// heard collects the sessions that this server heard from, those of earlier
// reports that no leader has acknowledged among them.
func (e *ensemble) heard(buf []int64) []int64 {
	buf = e.live(e.n.cfg.Handler.Live(buf[:0]))
	e.n.intake.sessions(func(id int64) { buf = append(buf, id) })
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range buf {
		e.unacked[id] = struct{}{}
	}
	buf = buf[:0]
	for id := range e.unacked {
		buf = append(buf, id)
	}
	return buf
}

// touched implements others. What a quorum has followed this server after needs
// no telling.
func (e *ensemble) touched(ids []int64) {
	contact := e.quorumContact()
	e.mu.Lock()
	defer e.mu.Unlock()
	if contact.After(e.touchedAt) {
		clear(e.unacked)
	}
	for _, id := range ids {
		e.unacked[id] = struct{}{}
	}
	e.touchedAt = time.Now()
}

// live implements others.
func (e *ensemble) live(dst []int64) []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.reporting {
		dst = append(dst, id)
	}
	return dst
}

// report sends reports to a leader until ctx ends.
func (e *ensemble) report(ctx context.Context, id raft.ServerID, addr string, t target) {
	for ctx.Err() == nil {
		err := e.reportOnce(ctx, id, addr, t)
		if ctx.Err() == nil {
			e.log.Debug("the leader does not take reports of live sessions", "leader", t.server, "err", err)
		}
		pauseFor(ctx, dialPause)
	}
}

// reportOnce serves one connection.
func (e *ensemble) reportOnce(ctx context.Context, id raft.ServerID, addr string, t target) error {
	dctx, done := context.WithTimeout(ctx, probeTimeout)
	conn, err := e.dial(dctx, quorum.Liveness, id, addr)
	done()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	quorum.LimitWrites(conn, e.stallLimit())
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	sent := make(chan sentReport, maxUnacked)
	received := make(chan error, 1)
	go func() {
		defer cancel()
		received <- e.readAcks(conn, sent, t)
	}()
	err = e.writeReports(ctx, conn, sent, t)
	_ = conn.Close()
	err = errors.Join(err, <-received)
	for len(sent) > 0 {
		giveUp((<-sent).inquiries)
	}
	return err
}

// sentReport is a report on its way.
type sentReport struct {
	seq       uint64
	at        time.Time
	inquiries []*inquiry // to be answered with it
}

func (e *ensemble) writeReports(ctx context.Context, conn net.Conn, sent chan<- sentReport, t target) error {
	var first [8]byte
	binary.BigEndian.PutUint64(first[:], t.incarnation)
	if _, err := conn.Write(first[:]); err != nil {
		return err
	}
	r := reporter{e: e, conn: conn, sent: sent}
	for urgent := false; ; {
		if err := r.report(ctx, urgent); err != nil {
			return err
		}
		var err error
		if urgent, err = r.pause(ctx); err != nil {
			return err
		}
	}
}

// reporter writes the reports of one connection.
type reporter struct {
	e    *ensemble
	conn net.Conn
	sent chan<- sentReport

	seq      uint64
	full     time.Time // when the sessions were last reported
	sessions []int64
	b        []byte
}

// report writes one report: with the sessions when it is time, and with whatever
// somebody wants to know.
func (r *reporter) report(ctx context.Context, urgent bool) error {
	r.sessions = r.sessions[:0]
	if !urgent || time.Since(r.full) >= r.e.reportInterval() {
		r.sessions = r.e.heard(r.sessions)
		r.full = time.Now()
	}
	r.seq++
	s := sentReport{seq: r.seq, inquiries: r.e.inquiries.take(), at: time.Now()}
	count := uint32(len(r.sessions))
	if len(s.inquiries) > 0 {
		count |= reportUrgent
	}
	r.b = binary.BigEndian.AppendUint64(r.b[:0], r.seq)
	r.b = binary.BigEndian.AppendUint32(r.b, count)
	for _, id := range r.sessions {
		r.b = binary.BigEndian.AppendUint64(r.b, uint64(id))
	}
	select {
	case r.sent <- s:
	case <-ctx.Done():
		giveUp(s.inquiries)
		return ctx.Err()
	}
	_, err := r.conn.Write(r.b)
	return err
}

// pause waits for the next report to be due, and says whether somebody waits
// for it.
func (r *reporter) pause(ctx context.Context) (urgent bool, err error) {
	t := time.NewTimer(time.Until(r.full.Add(r.e.reportInterval())))
	defer t.Stop()
	select {
	case <-t.C:
		return false, nil
	case <-r.e.inquiries.poke:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// readAcks notes what the leader acknowledges.
func (e *ensemble) readAcks(conn net.Conn, sent <-chan sentReport, t target) error {
	var b [ackSize]byte
	for {
		// A report is always on its way. That a leader without a quorum acknowledges
		// none is no reason to keep the connection.
		_ = conn.SetReadDeadline(time.Now().Add(e.stallLimit()))
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			return err
		}
		seq, index := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
		for {
			var r sentReport
			select {
			case r = <-sent:
			default:
				return fmt.Errorf("report %d was acknowledged and never sent", seq)
			}
			if r.seq == seq {
				e.acknowledged(r.at, index, t, len(sent) == 0)
				for _, one := range r.inquiries {
					one.answer <- index
				}
				break
			}
			giveUp(r.inquiries)
		}
	}
}

// acknowledged notes that the leader knew of this server's sessions at a time,
// and what was committed then.
func (e *ensemble) acknowledged(at time.Time, index uint64, t target, newest bool) {
	e.mu.Lock()
	if at.After(e.contact) {
		e.contact = at
	}
	e.freshness.note(mark{at, index}, e.syncLimit()/markSteps)
	if newest {
		clear(e.unacked)
	}
	e.mu.Unlock()
	e.catchUp.Store(&catchUp{index, t})
	e.caughtUp()
}

// catchUp is what has to be applied before this server may serve.
type catchUp struct {
	index uint64
	under target
}

// caughtUp publishes how far this server is, if it waits for something. It is
// called when that or what is applied changes.
func (e *ensemble) caughtUp() {
	c := e.catchUp.Load()
	if c == nil {
		return
	}
	done := e.caughtUpWith(c.index)
	if done && !e.catchUp.CompareAndSwap(c, nil) {
		return
	}
	if s := e.n.Status(); done == s.Serving && s.Leader == c.under.server && e.following.Load() == c.under.incarnation {
		return
	}
	e.n.do(func() { e.publishFollowing(c.under, done) })
}

// publishFollowing publishes that this server follows. Once caught up under a
// leadership it stays so. Control goroutine.
func (e *ensemble) publishFollowing(t target, caughtUp bool) {
	e.mu.Lock()
	current := e.target == t
	e.mu.Unlock()
	if !current || e.n.lead != nil || e.n.halted {
		return
	}
	e.following.Store(t.incarnation)
	old := e.n.Status()
	s := e.n.statusNow(false, "")
	// What was acknowledged may be as old as the wire that brought it.
	caughtUp = caughtUp && !e.removed() && e.tooOld() == ""
	s.Role, s.Leader, s.Serving = e.followerRole(), t.server, caughtUp
	if old.Serving && old.Role == s.Role && old.Leader == s.Leader && old.Epoch == s.Epoch {
		s.Serving = true
	}
	if !s.Serving {
		s.Reason = "catching up with the leader"
	}
	e.n.setStatus(s)
}

// publishLooking publishes that this server has no leader. Control goroutine.
func (e *ensemble) publishLooking(reason string) {
	if e.n.lead != nil || e.n.halted {
		return
	}
	e.following.Store(0)
	e.n.setStatus(e.n.statusNow(false, reason))
}

// leaveOff publishes that this server follows nobody any more, which it may not
// learn by the end of a connection: it is cut off from everybody, or it was
// removed. It serves again when a report is acknowledged.
func (e *ensemble) leaveOff() {
	if e.adrift() == "" {
		return
	}
	e.n.do(func() {
		if reason := e.adrift(); reason != "" {
			e.publishLooking(reason)
		}
	})
}

// adrift is why a server that takes itself for one that follows does not, empty
// if it does.
func (e *ensemble) adrift() string {
	switch {
	case e.leadNow() != nil || !e.n.Status().Serving:
		return ""
	case e.removed():
		return "this server is no member of the ensemble any more"
	}
	return e.tooOld()
}

// removed says whether this server is no member: Raft's configuration lacks it, or
// the membership that it has applied does, which Raft's follows.
func (e *ensemble) removed() bool {
	m := e.replicated()
	return e.outside() || m != nil && m.member(e.n.cfg.ID) == nil
}

// acceptLiveness takes the reports of a follower while this server leads.
func (e *ensemble) acceptLiveness(conn net.Conn, from quorum.Identity) {
	defer conn.Close()
	var first [8]byte
	_ = conn.SetReadDeadline(time.Now().Add(probeTimeout))
	if _, err := io.ReadFull(conn, first[:]); err != nil || !e.member(from) {
		return
	}
	quorum.LimitWrites(conn, e.stallLimit())
	l := e.leadNow()
	if l == nil || l.incarnation != binary.BigEndian.Uint64(first[:]) {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	acks := make(chan pendingAck, maxUnacked)
	acked := make(chan struct{})
	go func() {
		defer close(acked)
		defer cancel()
		e.acknowledge(ctx, conn, acks)
	}()
	e.readReports(ctx, stallReader{conn, 2 * e.stallLimit()}, l, raft.ServerID(from.ServerID), acks)
	cancel()
	<-acked
}

// stallReader reads from a connection on which something has to come within limit.
type stallReader struct {
	conn  net.Conn
	limit time.Duration
}

// Read implements io.Reader.
func (r stallReader) Read(p []byte) (int, error) {
	_ = r.conn.SetReadDeadline(time.Now().Add(r.limit))
	return r.conn.Read(p)
}

// pendingAck is a report to be acknowledged.
type pendingAck struct {
	seq, index uint64
	came       moment // when it came in
}

// readReports reads reports until the connection ends, or the server that they
// come from is no member any more: it is to notice that.
func (e *ensemble) readReports(ctx context.Context, conn io.Reader, l *leading, from raft.ServerID, acks chan<- pendingAck) {
	r := bufio.NewReader(conn)
	var head [reportSize]byte
	var sessions []int64
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		if !e.inRaft(from) {
			return
		}
		count := binary.BigEndian.Uint32(head[8:])
		if count &^= reportUrgent; count > maxReport {
			return
		}
		sessions = sessions[:0]
		for range count {
			var b [8]byte
			if _, err := io.ReadFull(r, b[:]); err != nil {
				return
			}
			sessions = append(sessions, int64(binary.BigEndian.Uint64(b[:])))
		}
		ack := pendingAck{seq: binary.BigEndian.Uint64(head[:]), index: e.n.raftNow().CommitIndex(), came: e.asked(l)}
		// Heartbeats now: neither a server that comes need wait, nor a client, and no
		// follower takes this server for silent.
		e.heartbeatNow()
		if count > 0 {
			e.n.touch(sessions)
		}
		select {
		case acks <- ack:
		case <-ctx.Done():
			return
		}
	}
}

// acknowledge answers reports in their order, each once a quorum has followed
// this server after it came in.
func (e *ensemble) acknowledge(ctx context.Context, conn net.Conn, acks <-chan pendingAck) {
	for {
		var a pendingAck
		select {
		case a = <-acks:
		case <-ctx.Done():
			return
		}
		if !e.awaitQuorum(ctx, a.came) {
			return
		}
		b := binary.BigEndian.AppendUint64(nil, a.seq)
		b = binary.BigEndian.AppendUint64(b, a.index)
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

// moment is a point in the order in which this server's contacts as leader of a
// term begin.
type moment struct {
	trans *quorum.Transport
	term  uint64
	mark  uint64
}

// asked is the moment at which somebody wants to know whether this server leads.
func (e *ensemble) asked(l *leading) moment {
	trans := e.transportNow()
	return moment{trans, l.term, trans.Mark()}
}

// awaitQuorum waits until a quorum is known to have followed this server in
// contacts that began after m. It fails when Raft was started anew.
func (e *ensemble) awaitQuorum(ctx context.Context, m moment) bool {
	for e.transportNow() == m.trans {
		changed := m.trans.Changed()
		if m.trans.ConfirmedSince(m.term, e.n.raftNow().GetConfiguration().Configuration(), m.mark) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// quorumContact is the newest time at which a quorum followed this server in an
// open leadership; zero without one.
func (e *ensemble) quorumContact() time.Time {
	l, r, trans := e.leadNow(), e.n.raftNow(), e.transportNow()
	if l == nil || r == nil || trans == nil {
		return time.Time{}
	}
	return trans.Confirmed(l.term, r.GetConfiguration().Configuration(), time.Now())
}

// patience implements others.
func (e *ensemble) patience() time.Duration { return returnWithin }

// confirmed implements others.
func (e *ensemble) confirmed() time.Time {
	now := e.quorumContact()
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.After(e.contact) {
		e.contact = now
	}
	return e.contact
}

// confirmedRecently implements others.
func (e *ensemble) confirmedRecently() bool {
	return time.Since(e.quorumContact()) < electionTimeout
}
