package forward

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

const (
	// MaxRun bounds one run: a batch, or one larger command.
	MaxRun = 256 << 20
	// A leader that accepts a stream answers with acceptsBeats if both sides send
	// heartbeats, and otherwise with accepts.
	accepts      = 1
	acceptsBeats = 2
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

// Pace returns the time until a task that runs every d is due.
type Pace func(d time.Duration) time.Duration

// Sender is the follower's end, a propose.Stream.
type Sender struct {
	conn  net.Conn
	in    *bufio.Reader // of conn
	limit time.Duration
	pace  Pace
	beats bool          // both sides send heartbeats
	ended chan struct{} // closed when the stream has ended
	once  sync.Once

	mu   sync.Mutex // held during a write
	buf  []byte     // a run, preceded by its size
	last time.Time  // time of the last write

	sent atomic.Uint64 // bytes since the leader accepted the stream
}

// NewSender returns the follower's end of a stream over conn, which is dead when it makes no
// progress within limit.
func NewSender(conn net.Conn, limit time.Duration, pace Pace) *Sender {
	return &Sender{conn: conn, in: bufio.NewReaderSize(conn, 64), limit: limit, pace: pace, ended: make(chan struct{})}
}

// Beats reports whether both sides send heartbeats.
func (s *Sender) Beats() bool { return s.beats }

// Ended returns a channel that is closed when the stream has ended.
func (s *Sender) Ended() <-chan struct{} { return s.ended }

// Open asks the leader to accept the stream, and checks that a few packets get through.
func (s *Sender) Open(incarnation uint64) error {
	b := binary.BigEndian.AppendUint64(nil, incarnation)
	if _, err := s.conn.Write(b); err != nil {
		return err
	}
	if taken, err := s.in.ReadByte(); err != nil || taken != acceptsBeats {
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
			return fmt.Errorf("the leader accepts the stream, but %d bytes on it do not arrive: %w", probeFill, err)
		}
	}
	return nil
}

// filler returns a filler of n bytes, which the leader ignores.
func filler(n int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, fillFlag|uint32(n)), make([]byte, n)...)
}

// Send implements propose.Stream.
func (s *Sender) Send(run []byte) error {
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
// instead, Watch closes it and write returns.
func (s *Sender) write(b []byte) error {
	s.sent.Add(uint64(len(b)))
	_, err := s.conn.Write(b)
	s.last = time.Now()
	return err
}

// Close implements propose.Stream.
func (s *Sender) Close() {
	s.once.Do(func() {
		_ = s.conn.Close()
		close(s.ended)
	})
}

// Beat sends heartbeats until the stream ends.
func (s *Sender) Beat() {
	if !s.beats {
		return
	}
	every := s.limit / signsPerStall
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.pace(every))
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

// Watch closes the stream when the leader has closed it or it is dead.
func (s *Sender) Watch(log *slog.Logger) {
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
		case err == nil, quorum.IsTimeout(err):
			quorum.BlamePath(s.conn)
			log.Info("replacing the stream of commands to the leader: it makes no progress", "for", s.limit,
				"sent", s.sent.Load(), "received", received)
		}
		return
	}
}

// nextSign waits for a heartbeat up to the limit. After the process was stopped, its
// deadline may have passed while heartbeats wait in the socket, so it tries a second time.
func (s *Sender) nextSign() (received uint64, holding bool, err error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.limit))
	if received, holding, err = s.sign(); quorum.IsTimeout(err) {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.limit / signsPerStall))
		received, holding, err = s.sign()
	}
	return received, holding, err
}

// sign reads a heartbeat. If it fails, the bytes read so far stay in the buffer.
func (s *Sender) sign() (received uint64, holding bool, err error) {
	b, err := s.in.Peek(signSize)
	if err != nil {
		return 0, false, err
	}
	received, holding = binary.BigEndian.Uint64(b), b[8] != 0
	_, err = s.in.Discard(signSize)
	return received, holding, err
}
