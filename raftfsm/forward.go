package raftfsm

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// How a follower's commands get to the leader.
//
// The log says whom to follow: a leaderStart of server S with incarnation I. A
// follower opens one stream to S, which begins with I and then carries its
// runs, one after another:
//
//	stream = incarnation:8 (size:4 run)*
//
// The leader reads as long as it is open in incarnation I, and stops reading
// while too much waits to be proposed: that is the back-pressure. The first byte
// that comes back says that the stream is taken. After it come the leader's signs
// of life (forwardbeat.go). Commands that were sent on a stream that ended have an
// uncertain fate: the follower gives up all that is on its way.

const (
	// maxForwarded bounds one run: a batch, or one command that is larger.
	maxForwarded = 256 << 20
	// dialPause is the pause between two attempts to reach a leader.
	dialPause = 20 * time.Millisecond
	// streamTaken is what a leader answers when it takes a stream, and streamBeats
	// when both sides send signs of life.
	streamTaken = 1
	streamBeats = 2
)

var errStreamEnded = errors.New("the stream of commands to the leader has ended")

// led implements others.
func (e *ensemble) led(server uint64, incarnation uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target = target{server, incarnation}
	e.unnamed = server == noServer
	if e.attending != nil {
		e.attending()
	}
}

// followLoop keeps this server connected with whom the log says to follow.
func (e *ensemble) followLoop() {
	for e.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(e.ctx)
		leader := e.leaderID()
		e.mu.Lock()
		if e.unnamed {
			// A leader takes a stream only for its own incarnation: with a wrong
			// one nothing happens but that another is tried.
			e.target.server = serverOf(leader)
		}
		t, lead := e.target, e.lead
		e.attending = cancel
		e.mu.Unlock()
		switch {
		case lead != nil:
			lead.last(ctx)
		case t.incarnation != 0 && t.server != noServer:
			e.attend(ctx, t)
		default:
			e.lookAround(ctx)
		}
		pauseFor(ctx, dialPause)
		cancel()
	}
}

// last waits as long as the leadership lasts.
func (l *leading) last(ctx context.Context) {
	select {
	case <-l.ctx.Done():
	case <-ctx.Done():
	}
}

// attend serves under a leadership of another server as long as it lasts.
func (e *ensemble) attend(ctx context.Context, t target) {
	id, addr := e.locate(t.server)
	if id == "" || !e.ledBy(t.server) {
		e.lookAround(ctx)
		return
	}
	s, err := e.openForward(ctx, id, addr, t.incarnation)
	if err != nil {
		e.log.Debug("no stream of commands to the leader", "leader", t.server, "err", err)
		if quorum.Refused(err) {
			e.transportNow().Suspect(id)
		}
		e.cutOff(t)
		e.lookAround(ctx)
		return
	}
	if s.beats {
		e.transportNow().Reached()
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.watch(e.log.With("leader", t.server)) })
	wg.Go(s.beat)
	ctx, cancel := context.WithCancel(ctx)
	wg.Go(func() { e.report(ctx, id, addr, t) })
	e.n.do(func() { e.take(s, t) })
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	cancel()
	s.Close()
	e.mu.Lock()
	e.unattended = time.Now()
	e.mu.Unlock()
	e.transportNow().Suspect(id)
	e.n.do(func() { e.drop(s) })
	wg.Wait()
}

// cutOff publishes that this server does not follow a leader that it cannot send
// commands to. It gets a stall limit for it, since the leader may just have opened
// or changed.
func (e *ensemble) cutOff(t target) {
	e.mu.Lock()
	since := time.Since(e.unattended)
	e.mu.Unlock()
	if since < e.stallLimit() {
		return
	}
	e.n.do(func() {
		if e.following.Load() == t.incarnation {
			e.publishLooking(fmt.Sprintf("commands do not reach the leader, server %d", t.server))
		}
	})
}

// take lets this server's commands take the stream, unless the leadership that
// it belongs to is over. Control goroutine.
func (e *ensemble) take(s *stream, t target) {
	e.mu.Lock()
	current := e.target == t && e.lead == nil
	e.mu.Unlock()
	if !current || e.n.lead != nil || e.n.halted {
		s.Close()
		return
	}
	e.n.follow(s)
}

// drop gives up what was sent on a stream that has ended. Control goroutine.
func (e *ensemble) drop(s *stream) {
	if f := e.n.forwarding; f != nil && f.to == forwarder(s) {
		e.n.unfollow(errStreamEnded)
	}
}

// ledBy says whether Raft agrees that the server leads.
func (e *ensemble) ledBy(server uint64) bool {
	id := e.leaderID()
	return id != "" && serverOf(id) == server
}

// lookAround is what a server without a leader does: it says so, and waits for
// something to change.
func (e *ensemble) lookAround(ctx context.Context) {
	r := e.n.raftNow()
	if e.leaderID() == "" {
		e.n.do(func() { e.publishLooking("no leader is known") })
		if r.LastIndex() > foundingIndex {
			e.transportNow().Leaderless()
		}
	}
	pauseFor(ctx, dialPause)
}

// locate finds a server in Raft's configuration.
func (e *ensemble) locate(server uint64) (raft.ServerID, string) {
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		if serverOf(s.ID) == server {
			return s.ID, string(s.Address)
		}
	}
	return "", ""
}

// dial reaches a server at its address or one that it may have moved to.
func (e *ensemble) dial(ctx context.Context, kind quorum.Kind, id raft.ServerID, addr string) (net.Conn, error) {
	conn, _, err := e.hub.Dial(ctx, kind, addr, string(id))
	if err == nil {
		return conn, nil
	}
	for _, other := range e.addresses(id) {
		if other == addr {
			continue
		}
		if conn, _, oerr := e.hub.Dial(ctx, kind, other, string(id)); oerr == nil {
			return conn, nil
		}
	}
	return nil, err
}

// openForward opens a stream to a leadership; it fails while that is not open.
func (e *ensemble) openForward(ctx context.Context, id raft.ServerID, addr string, incarnation uint64) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := e.dial(ctx, quorum.Forward, id, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s := newStream(conn, e.stallLimit())
	err = s.open(incarnation)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// acceptForward takes the commands of a follower while this server leads.
func (e *ensemble) acceptForward(conn net.Conn, from quorum.Identity) {
	defer conn.Close()
	origin := serverOf(raft.ServerID(from.ServerID))
	var first [8]byte
	_ = conn.SetReadDeadline(time.Now().Add(probeTimeout))
	if _, err := io.ReadFull(conn, first[:]); err != nil || !e.member(from) || origin == noServer {
		return
	}
	incarnation := binary.BigEndian.Uint64(first[:])
	l := e.leadNow()
	if l == nil || l.incarnation != incarnation {
		return
	}
	stop := context.AfterFunc(l.ctx, func() { _ = conn.Close() })
	defer stop()
	in := newForwarded(conn, e.stallLimit(), from.Beats)
	if err := in.begin(); err != nil {
		return
	}
	defer in.end()
	if err := e.receive(in, incarnation, uint8(origin)); l.ctx.Err() == nil && !errors.Is(err, io.EOF) {
		level := slog.LevelDebug // of one that was opened in vain, as may be repeated
		if in.carried {
			level = slog.LevelInfo
		}
		e.log.Log(context.Background(), level, "a follower's stream of commands ended", "server", origin, "err", err)
	}
}

// receive reads runs until the stream ends.
func (e *ensemble) receive(in *forwarded, incarnation uint64, origin uint8) error {
	var size [4]byte
	var buf []byte
	stream := bufio.NewReader(in)
	for {
		if _, err := io.ReadFull(stream, size[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(size[:])
		if n&fillFlag != 0 {
			if err := in.fill(stream, n&^fillFlag); err != nil {
				return err
			}
			continue
		}
		if n > maxForwarded {
			return fmt.Errorf("run of %d bytes", n)
		}
		run, err := readRun(stream, buf[:0], int(n))
		if err != nil {
			return err
		}
		in.carried = true
		in.holding.Store(true)
		err = e.n.remote.add(incarnation, origin, run)
		if in.holding.Store(false); err != nil {
			return err
		}
		if buf = run; cap(buf) > maxSpareBytes {
			buf = nil
		}
	}
}

// readRun appends n bytes to b. The room grows with what really comes: a length
// alone makes nobody allocate.
func readRun(r io.Reader, b []byte, n int) ([]byte, error) {
	const step = 256 << 10
	for n > 0 {
		k := min(n, step)
		at := len(b)
		b = append(b, make([]byte, k)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return nil, err
		}
		n -= k
	}
	return b, nil
}

// pauseFor waits.
func pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
