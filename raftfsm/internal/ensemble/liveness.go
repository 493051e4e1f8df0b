package ensemble

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
	"github.com/zkgo/zkgo/internal/quorum/transport"
)

// How a follower reports its sessions to the leader, under the rule in
// session/liveness.go.
//
// A small separate connection, on which no command can delay anything, carries at least
// every half tick
//
//	report = seq:8 flags:1 count:3 session:8*
//	ack    = seq:8 index:8
//
// The index is the commit index when the report arrived. The flag means that a caller
// waits for the report, so the leader asks for contacts immediately. Such a report
// doesn't have to name sessions.

const (
	// reportEvery is the longest time between two reports.
	reportEvery = 500 * time.Millisecond
	// maxReport bounds the sessions of one report.
	maxReport = 1<<24 - 1
	// reportUrgent is the flag, in the four bytes of flags and count.
	reportUrgent = 1 << 31
	// reportSize and ackSize are the sizes of the fixed parts in bytes.
	reportSize = 8 + 4
	ackSize    = 8 + 8
	// maxUnacked limits the reports that wait for their acknowledgement.
	maxUnacked = 64
)

func (b *base) reportInterval() time.Duration { return min(b.env.Config.TickTime/2, reportEvery) }

// heard collects the sessions to report, reusing buf.
func (f *freshness) heard(buf []int64) []int64 {
	buf = f.AppendLive(f.env.Live(buf[:0]))
	f.env.Local.Sessions(func(id int64) { buf = append(buf, id) })
	return f.liveness.Report(buf)
}

// Touched is called on the leader with the sessions that it has noted as alive. If it no
// longer leads, it reports them to the next leader.
func (f *freshness) Touched(ids []int64) { f.liveness.Led(ids, f.quorumContact(), time.Now()) }

// AppendLive appends the live sessions that neither the connections nor the local runs
// show.
func (f *freshness) AppendLive(dst []int64) []int64 { return f.liveness.Held(dst) }

// report sends reports to a leader until ctx ends. It calls reported with the index in each
// acknowledgement.
func (f *freshness) report(ctx context.Context, id raft.ServerID, addr string, t target, reported func(index uint64)) {
	for ctx.Err() == nil {
		err := f.reportOnce(ctx, id, addr, t, reported)
		if ctx.Err() == nil {
			f.log.Debug("the leader does not accept reports of live sessions", "leader", t.server, "err", err)
		}
		pauseFor(ctx, dialPause)
	}
}

// reportOnce serves one connection.
func (f *freshness) reportOnce(ctx context.Context, id raft.ServerID, addr string, t target, reported func(uint64)) error {
	dctx, done := context.WithTimeout(ctx, ProbeTimeout)
	conn, err := f.places.Dial(dctx, quorum.Liveness, id, addr)
	done()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	quorum.LimitWrites(conn, f.stallLimit(), nil)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	sent := make(chan sentReport, maxUnacked)
	received := make(chan error, 1)
	go func() {
		defer cancel()
		received <- f.readAcks(conn, sent, reported)
	}()
	err = f.writeReports(ctx, conn, sent, t)
	_ = conn.Close()
	err = errors.Join(err, <-received)
	for len(sent) > 0 {
		giveUp((<-sent).inquiries)
	}
	return err
}

// sentReport is a report in flight.
type sentReport struct {
	seq       uint64
	at        time.Time
	inquiries []*inquiry // to be answered together
}

func (f *freshness) writeReports(ctx context.Context, conn net.Conn, sent chan<- sentReport, t target) error {
	var first [8]byte
	binary.BigEndian.PutUint64(first[:], t.incarnation)
	if _, err := conn.Write(first[:]); err != nil {
		return err
	}
	r := reporter{f: f, conn: conn, sent: sent}
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
	f    *freshness
	conn net.Conn
	sent chan<- sentReport

	seq      uint64
	full     time.Time // when the sessions were last reported
	sessions []int64
	b        []byte
}

// report writes one report, with the sessions if they are due and with all pending
// inquiries.
func (r *reporter) report(ctx context.Context, urgent bool) error {
	r.sessions = r.sessions[:0]
	if !urgent || time.Since(r.full) >= r.f.reportInterval() {
		r.sessions = r.f.heard(r.sessions)
		r.full = time.Now()
	}
	r.seq++
	s := sentReport{seq: r.seq, inquiries: r.f.inquiries.take(), at: time.Now()}
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

// pause waits until the next report is due or an inquiry arrives. urgent reports the
// latter.
func (r *reporter) pause(ctx context.Context) (urgent bool, err error) {
	t := time.NewTimer(r.f.rhythm.Next(r.f.reportInterval()))
	defer t.Stop()
	select {
	case <-t.C:
		return false, nil
	case <-r.f.inquiries.poke:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// readAcks records the leader's acknowledgements.
func (f *freshness) readAcks(conn net.Conn, sent <-chan sentReport, reported func(uint64)) error {
	var b [ackSize]byte
	for {
		// A report is always in flight. If the leader acknowledges none because it has no
		// quorum, don't keep the connection.
		_ = conn.SetReadDeadline(time.Now().Add(f.stallLimit()))
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
				f.liveness.Acknowledged(r.at, index, len(sent) == 0)
				reported(index)
				for _, one := range r.inquiries {
					one.answer <- index
				}
				break
			}
			giveUp(r.inquiries)
		}
	}
}

// acceptLiveness reads the reports of a follower while this server leads.
func (f *freshness) acceptLiveness(conn net.Conn, from quorum.Identity) {
	defer conn.Close()
	var first [8]byte
	_ = conn.SetReadDeadline(time.Now().Add(ProbeTimeout))
	if _, err := io.ReadFull(conn, first[:]); err != nil || !f.belongs(from) {
		return
	}
	quorum.LimitWrites(conn, f.stallLimit(), nil)
	l := f.leadNow()
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
		f.acknowledge(ctx, conn, acks)
	}()
	f.readReports(ctx, stallReader{conn, 2 * f.stallLimit()}, l, raft.ServerID(from.ServerID), acks)
	cancel()
	<-acked
}

// stallReader reads from a connection and fails when nothing arrives within limit.
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
	came       moment // when it arrived
}

// readReports reads reports until the connection ends or its sender is no longer a
// member. The sender notices the latter by the end of the connection.
func (f *freshness) readReports(ctx context.Context, conn io.Reader, l *leading, from raft.ServerID, acks chan<- pendingAck) {
	r := bufio.NewReader(conn)
	var head [reportSize]byte
	var sessions []int64
	for first := true; ; first = false {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		if !f.inRaft(from) {
			return
		}
		count := binary.BigEndian.Uint32(head[8:])
		urgent := count&reportUrgent != 0
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
		ack := pendingAck{seq: binary.BigEndian.Uint64(head[:]), index: f.env.RaftNow().CommitIndex(), came: f.asked(l)}
		if first || urgent { // neither a joining server nor a client needs to wait for the next heartbeat
			f.heartbeatNow()
		}
		if count > 0 {
			f.env.Touch(sessions)
		}
		select {
		case acks <- ack:
		case <-ctx.Done():
			return
		}
	}
}

// acknowledge answers reports in order, each one after a quorum has followed this
// server since it arrived.
func (f *freshness) acknowledge(ctx context.Context, conn net.Conn, acks <-chan pendingAck) {
	for {
		var a pendingAck
		select {
		case a = <-acks:
		case <-ctx.Done():
			return
		}
		if !f.awaitQuorum(ctx, a.came) {
			return
		}
		b := binary.BigEndian.AppendUint64(nil, a.seq)
		b = binary.BigEndian.AppendUint64(b, a.index)
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

// moment is a point in the sequence of contacts that this server starts as leader of a
// term.
type moment struct {
	trans *transport.Transport
	term  uint64
	mark  uint64
}

// asked returns the moment at which a caller asks whether this server leads.
func (b *base) asked(l *leading) moment {
	trans := b.transportNow()
	return moment{trans, l.term, trans.Mark()}
}

// awaitQuorum waits until a quorum is known to have followed this server in contacts that
// started after m. It returns false when Raft was restarted or ctx ends.
func (b *base) awaitQuorum(ctx context.Context, m moment) bool {
	for b.transportNow() == m.trans {
		changed := m.trans.Changed()
		if m.trans.ConfirmedSince(m.term, b.env.RaftNow().GetConfiguration().Configuration(), m.mark) {
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
