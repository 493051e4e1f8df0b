package ensemble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/forward"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// How a follower's commands get to the leader.
//
// The log determines the leader to follow: a LeaderStart of server S with incarnation I. A
// follower opens one stream to S (raftfsm/internal/forward). When the stream ends, the outcome
// of the commands sent on it is unknown, so the follower gives up all commands in flight.

// dialPause is the pause between two attempts to reach a leader.
const dialPause = 20 * time.Millisecond

var errStreamEnded = errors.New("the stream of commands to the leader has ended")

// following is how this server follows the leader that the log names.
type following struct {
	*base
	places    *places
	freshness *freshness

	catchUp  atomic.Pointer[catchUp] // nil: not catching up
	followed atomic.Uint64           // incarnation published as followed, 0 none

	// Guarded by base.mu.
	target     target // the leader to follow according to the log
	unnamed    bool   // target comes from a snapshot, without the server: Raft knows the leader
	attending  context.CancelFunc
	unattended time.Time // when the last stream of commands to a leader ended
}

// target is a leadership of another server; none if incarnation is 0.
type target struct {
	server      uint64 // NoServer until Raft names the leader
	incarnation uint64
}

// Led is called on the control goroutine when the LeaderStart of another server was applied
// here. Commands that were sent to an earlier incarnation and are not applied by now never
// will be. NoServer means that the LeaderStart came with a restored snapshot.
func (f *following) Led(server uint64, incarnation uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target = target{server, incarnation}
	f.unnamed = server == membership.NoServer
	if f.attending != nil {
		f.attending()
	}
}

// followLoop keeps this server connected to the leader that the log names.
func (f *following) followLoop() {
	for f.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(f.ctx)
		leader := f.leaderID()
		f.mu.Lock()
		if f.unnamed {
			// A leader accepts a stream only for its own incarnation. If this is the
			// wrong server, the attempt fails and the loop tries again.
			f.target.server = membership.ServerOf(leader)
		}
		t, lead := f.target, f.lead
		f.attending = cancel
		f.mu.Unlock()
		switch {
		case lead != nil:
			lead.last(ctx)
		case t.incarnation != 0 && t.server != membership.NoServer:
			f.attend(ctx, t)
		default:
			f.lookAround(ctx)
		}
		pauseFor(ctx, dialPause)
		cancel()
	}
}

// last waits until the leadership or ctx ends.
func (l *leading) last(ctx context.Context) {
	select {
	case <-l.ctx.Done():
	case <-ctx.Done():
	}
}

// attend follows a leadership of another server until the stream or ctx ends.
func (f *following) attend(ctx context.Context, t target) {
	id, addr := f.locate(t.server)
	if id == "" || !f.ledBy(t.server) {
		f.lookAround(ctx)
		return
	}
	s, err := f.openForward(ctx, id, addr, t.incarnation)
	if err != nil {
		f.log.Debug("no stream of commands to the leader", "leader", t.server, "err", err)
		if quorum.Refused(err) {
			f.transportNow().Suspect(id)
		}
		f.cutOff(t)
		f.lookAround(ctx)
		return
	}
	if s.Beats() {
		f.transportNow().Reached()
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Watch(f.log.With("leader", t.server)) })
	wg.Go(s.Beat)
	ctx, cancel := context.WithCancel(ctx)
	wg.Go(func() { f.freshness.report(ctx, id, addr, t, func(index uint64) { f.reported(index, t) }) })
	f.env.Do(func() { f.take(s, t) })
	select {
	case <-s.Ended():
	case <-ctx.Done():
	}
	cancel()
	s.Close()
	f.mu.Lock()
	f.unattended = time.Now()
	f.mu.Unlock()
	f.transportNow().Suspect(id)
	f.env.Do(func() { f.drop(s) })
	wg.Wait()
}

// cutOff publishes that this server doesn't follow the leader, because it can't send
// commands to it. It waits for the stall limit first, because the leadership may have
// just opened or changed.
func (f *following) cutOff(t target) {
	f.mu.Lock()
	since := time.Since(f.unattended)
	f.mu.Unlock()
	if since < f.stallLimit() {
		return
	}
	f.env.Do(func() {
		if f.followed.Load() == t.incarnation {
			f.publishLooking(fmt.Sprintf("commands do not reach the leader, server %d", t.server))
		}
	})
}

// take starts to send this server's commands on the stream, unless the stream's
// leadership is over. It runs on the control goroutine.
func (f *following) take(s *forward.Sender, t target) {
	f.mu.Lock()
	current := f.target == t && f.lead == nil
	f.mu.Unlock()
	if !current || !f.env.Control.Idle() {
		s.Close()
		return
	}
	f.env.Control.Follow(s)
}

// drop gives up the commands sent on a stream that has ended. It runs on the control
// goroutine.
func (f *following) drop(s *forward.Sender) {
	f.env.Control.Unfollow(s, errStreamEnded)
}

// ledBy reports whether the server is the leader according to Raft.
func (f *following) ledBy(server uint64) bool {
	id := f.leaderID()
	return id != "" && membership.ServerOf(id) == server
}

// lookAround publishes that this server has no leader, if Raft knows none, and pauses
// before the next attempt.
func (f *following) lookAround(ctx context.Context) {
	r := f.env.RaftNow()
	if f.leaderID() == "" {
		f.env.Do(func() { f.publishLooking("no leader is known") })
		if r.LastIndex() > formedIndex {
			f.transportNow().Leaderless()
		}
	}
	pauseFor(ctx, dialPause)
}

// Dial connects to a server at addr or at an address that it may have moved to.
func (p *places) Dial(ctx context.Context, kind quorum.Kind, id raft.ServerID, addr string) (net.Conn, error) {
	return quorum.DialAny(ctx, p.hub, kind, quorum.Addresses(addr, p.Addresses(id)), string(id))
}

// openForward opens a stream to a leadership. It fails if the leadership isn't open.
func (f *following) openForward(ctx context.Context, id raft.ServerID, addr string, incarnation uint64) (*forward.Sender, error) {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	conn, err := f.places.Dial(ctx, quorum.Forward, id, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s := forward.NewSender(conn, f.stallLimit(), f.rhythm.Next)
	err = s.Open(incarnation)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if quorum.IsTimeout(err) {
			quorum.BlamePath(conn)
		}
		return nil, err
	}
	return s, nil
}

// acceptForward receives a follower's commands while this server leads.
func (f *following) acceptForward(conn net.Conn, from quorum.Identity) {
	defer conn.Close()
	origin := membership.ServerOf(raft.ServerID(from.ServerID))
	var first [8]byte
	_ = conn.SetReadDeadline(time.Now().Add(ProbeTimeout))
	if _, err := io.ReadFull(conn, first[:]); err != nil || !f.belongs(from) || origin == membership.NoServer {
		return
	}
	incarnation := binary.BigEndian.Uint64(first[:])
	l := f.leadNow()
	if l == nil || l.incarnation != incarnation {
		return
	}
	stop := context.AfterFunc(l.ctx, func() { _ = conn.Close() })
	defer stop()
	in := forward.NewReceiver(conn, f.stallLimit(), from.Beats, f.rhythm.Next)
	if err := in.Begin(); err != nil {
		return
	}
	defer in.End()
	if err := in.Receive(func(run []byte) error { return f.env.Remote.Add(incarnation, uint8(origin), run) }); l.ctx.Err() == nil && !errors.Is(err, io.EOF) {
		level := slog.LevelDebug // a stream without a run: this may repeat often
		if in.Carried() {
			level = slog.LevelInfo
		}
		f.log.Log(context.Background(), level, "a follower's stream of commands ended", "server", origin, "err", err)
	}
}

// pauseFor waits for d or until ctx ends.
func pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
