package raftfsm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// Heartbeats on the stream of commands. Both sides send one every third of the stall
// limit:
//
//	follower → leader: filler = (fillFlag | n):4 byte*n
//	leader → follower: sign = received:8 holding:1
//
// received counts the bytes of the stream that the leader has read. holding says that
// the leader isn't reading for now, because too many commands wait to be proposed. So the
// follower can tell a waiting stream from a dead one. On a live stream the signs come in
// time, and either all sent bytes have been received, or received grows, or the leader is
// holding. A follower whose stream is dead closes it and opens another.
//
// A stream begins with a filler of a few packets' size, which the leader has to confirm:
// on a network that loses large packets, a stream could be opened but carry no runs.
//
// A server of an earlier release neither sends nor understands heartbeats. The handshake
// (quorum.Identity.Beats) and the leader's first byte tell whether they are supported.

const (
	// fillFlag marks a filler, in the four bytes of a run's size.
	fillFlag = 1 << 31
	// maxFill bounds a filler. probeFill is the size of the first filler of a stream,
	// larger than a packet of up to 1500 bytes.
	maxFill   = 64 << 10
	probeFill = 4 << 10
	// signSize is the size of a leader's heartbeat.
	signSize = 8 + 1
	// signsPerStall is the number of heartbeats per stall limit.
	signsPerStall = 3
)

// stream is a propose.Stream over a connection.
type stream struct {
	conn   net.Conn
	in     *bufio.Reader // of conn
	limit  time.Duration
	rhythm rhythm
	beats  bool          // both sides send heartbeats
	ended  chan struct{} // closed when the stream has ended
	once   sync.Once

	mu   sync.Mutex // held during a write
	buf  []byte     // a run, preceded by its size
	last time.Time  // time of the last write

	sent atomic.Uint64 // bytes since the leader accepted the stream
}

func newStream(conn net.Conn, limit time.Duration, r rhythm) *stream {
	return &stream{conn: conn, in: bufio.NewReaderSize(conn, 64), limit: limit, rhythm: r, ended: make(chan struct{})}
}

// open asks the leader to accept the stream, and checks that a few packets get through.
func (s *stream) open(incarnation uint64) error {
	b := binary.BigEndian.AppendUint64(nil, incarnation)
	if _, err := s.conn.Write(b); err != nil {
		return err
	}
	if taken, err := s.in.ReadByte(); err != nil || taken != streamBeats {
		return err
	}
	s.beats = true
	_ = s.conn.SetReadDeadline(time.Now().Add(s.limit))
	if err := s.write(filler(probeFill)); err != nil {
		return err
	}
	for received := uint64(0); received < s.sent.Load(); {
		var err error
		if received, _, err = s.sign(); err != nil {
			return fmt.Errorf("the leader takes the stream and %d bytes on it do not arrive: %w", probeFill, err)
		}
	}
	return nil
}

// filler returns a filler of n bytes, which the leader ignores.
func filler(n int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, fillFlag|uint32(n)), make([]byte, n)...)
}

// Send implements propose.Stream.
func (s *stream) Send(run []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := binary.BigEndian.AppendUint32(s.buf[:0], uint32(len(run)))
	if b = append(b, run...); cap(b) <= propose.MaxSpareBytes {
		s.buf = b
	}
	if err := s.write(b); err != nil {
		s.Close()
		return err
	}
	return nil
}

// write sends b. It blocks while the leader isn't reading. If the stream is dead
// instead, watch closes it and write returns.
func (s *stream) write(b []byte) error {
	s.sent.Add(uint64(len(b)))
	_, err := s.conn.Write(b)
	s.last = time.Now()
	return err
}

// Close implements propose.Stream.
func (s *stream) Close() {
	s.once.Do(func() {
		_ = s.conn.Close()
		close(s.ended)
	})
}

// beat sends heartbeats until the stream ends.
func (s *stream) beat() {
	if !s.beats {
		return
	}
	every := s.limit / signsPerStall
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.rhythm.next(every))
		select {
		case <-timer.C:
		case <-s.ended:
			return
		}
		if !s.mu.TryLock() {
			continue // a run is being sent
		}
		var err error
		if time.Since(s.last) >= every {
			err = s.write(filler(0))
		}
		s.mu.Unlock()
		if err != nil {
			s.Close()
			return
		}
	}
}

// watch closes the stream when the leader has closed it or it is dead.
func (s *stream) watch(log *slog.Logger) {
	defer s.Close()
	if !s.beats {
		_, _ = s.in.ReadByte()
		return
	}
	progress, before := time.Now(), uint64(0)
	for {
		received, holding, err := s.nextSign()
		now := time.Now()
		if err == nil && (received > before || holding || received == s.sent.Load()) {
			progress, before = now, received
		}
		switch {
		case err == nil && now.Sub(progress) < s.limit:
			continue
		case err == nil, isTimeout(err):
			quorum.BlamePath(s.conn)
			log.Info("replacing the stream of commands to the leader: it makes no progress", "for", s.limit,
				"sent", s.sent.Load(), "received", received)
		}
		return
	}
}

// nextSign waits for a heartbeat up to the limit. After the process was stopped, its
// deadline may have passed while heartbeats wait in the socket, so it tries a second time.
func (s *stream) nextSign() (received uint64, holding bool, err error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.limit))
	if received, holding, err = s.sign(); isTimeout(err) {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.limit / signsPerStall))
		received, holding, err = s.sign()
	}
	return received, holding, err
}

// sign reads a heartbeat. If it fails, the bytes read so far stay in the buffer.
func (s *stream) sign() (received uint64, holding bool, err error) {
	b, err := s.in.Peek(signSize)
	if err != nil {
		return 0, false, err
	}
	received, holding = binary.BigEndian.Uint64(b), b[8] != 0
	_, err = s.in.Discard(signSize)
	return received, holding, err
}

// isTimeout reports whether err is a missed deadline.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// forwarded is the leader's end of a stream of commands.
type forwarded struct {
	conn   net.Conn
	limit  time.Duration
	rhythm rhythm
	beats  bool
	ended  chan struct{}
	wg     sync.WaitGroup

	carried  bool // it has carried a run; used by the reader only
	received atomic.Uint64
	holding  atomic.Bool
	confirm  chan struct{} // capacity 1: send a heartbeat now
}

func newForwarded(conn net.Conn, limit time.Duration, beats bool, r rhythm) *forwarded {
	return &forwarded{conn: conn, limit: limit, beats: beats, rhythm: r, ended: make(chan struct{}), confirm: make(chan struct{}, 1)}
}

// begin accepts the stream and starts the heartbeats.
func (f *forwarded) begin() error {
	_ = f.conn.SetReadDeadline(time.Time{})
	taken := byte(streamTaken)
	if f.beats {
		taken = streamBeats
	}
	if _, err := f.conn.Write([]byte{taken}); err != nil {
		return err
	}
	if f.beats {
		f.wg.Go(f.sign)
	}
	return nil
}

// end closes the stream and stops the heartbeats.
func (f *forwarded) end() {
	close(f.ended)
	_ = f.conn.Close()
	f.wg.Wait()
}

// Read reads from the stream. Data has to arrive within twice the limit, so that the
// follower detects a dead stream before the leader does.
func (f *forwarded) Read(p []byte) (int, error) {
	if f.beats {
		_ = f.conn.SetReadDeadline(time.Now().Add(2 * f.limit))
	}
	n, err := f.conn.Read(p)
	f.received.Add(uint64(n))
	return n, err
}

// fill discards a filler of n bytes, and confirms it unless it is empty.
func (f *forwarded) fill(r io.Reader, n uint32) error {
	if n > maxFill {
		return fmt.Errorf("filler of %d bytes", n)
	}
	if n == 0 {
		return nil
	}
	if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
		return err
	}
	select {
	case f.confirm <- struct{}{}:
	default:
	}
	return nil
}

// sign sends heartbeats until the stream ends.
func (f *forwarded) sign() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(f.rhythm.next(f.limit / signsPerStall))
		select {
		case <-timer.C:
		case <-f.confirm:
		case <-f.ended:
			return
		}
		b := binary.BigEndian.AppendUint64(make([]byte, 0, signSize), f.received.Load())
		b = append(b, 0)
		if f.holding.Load() {
			b[8] = 1
		}
		_ = f.conn.SetWriteDeadline(time.Now().Add(2 * f.limit))
		if _, err := f.conn.Write(b); err != nil {
			_ = f.conn.Close()
			return
		}
	}
}
