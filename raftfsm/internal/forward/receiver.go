package forward

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// Receiver is the leader's end of a stream.
type Receiver struct {
	conn  net.Conn
	limit time.Duration
	pace  Pace
	beats bool
	ended chan struct{}
	wg    sync.WaitGroup

	carried  bool // it has carried a run; used by the reader only
	received atomic.Uint64
	holding  atomic.Bool
	confirm  chan struct{} // capacity 1: send a heartbeat now
}

// NewReceiver returns the leader's end of a stream over conn. beats reports whether the
// follower sends heartbeats.
func NewReceiver(conn net.Conn, limit time.Duration, beats bool, pace Pace) *Receiver {
	return &Receiver{conn: conn, limit: limit, beats: beats, pace: pace, ended: make(chan struct{}), confirm: make(chan struct{}, 1)}
}

// Begin accepts the stream and starts the heartbeats.
func (r *Receiver) Begin() error {
	_ = r.conn.SetReadDeadline(time.Time{})
	taken := byte(accepts)
	if r.beats {
		taken = acceptsBeats
	}
	if _, err := r.conn.Write([]byte{taken}); err != nil {
		return err
	}
	if r.beats {
		r.wg.Go(r.sign)
	}
	return nil
}

// End closes the stream and stops the heartbeats.
func (r *Receiver) End() {
	close(r.ended)
	_ = r.conn.Close()
	r.wg.Wait()
}

// Read reads from the stream. Data must arrive within twice the limit, so that the
// follower detects a dead stream before the leader does.
func (r *Receiver) Read(p []byte) (int, error) {
	if r.beats {
		_ = r.conn.SetReadDeadline(time.Now().Add(2 * r.limit))
	}
	n, err := r.conn.Read(p)
	r.received.Add(uint64(n))
	return n, err
}

// fill discards a filler of n bytes, and confirms it unless it is empty.
func (r *Receiver) fill(in io.Reader, n uint32) error {
	if n > maxFill {
		return fmt.Errorf("filler of %d bytes", n)
	}
	if n == 0 {
		return nil
	}
	if _, err := io.CopyN(io.Discard, in, int64(n)); err != nil {
		return err
	}
	select {
	case r.confirm <- struct{}{}:
	default:
	}
	return nil
}

// sign sends heartbeats until the stream ends.
func (r *Receiver) sign() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(r.pace(r.limit / signsPerStall))
		select {
		case <-timer.C:
		case <-r.confirm:
		case <-r.ended:
			return
		}
		b := binary.BigEndian.AppendUint64(make([]byte, 0, signSize), r.received.Load())
		b = append(b, 0)
		if r.holding.Load() {
			b[8] = 1
		}
		_ = r.conn.SetWriteDeadline(time.Now().Add(2 * r.limit))
		if _, err := r.conn.Write(b); err != nil {
			_ = r.conn.Close()
			return
		}
	}
}

// Carried reports whether the stream has carried a run.
func (r *Receiver) Carried() bool { return r.carried }

// Receive reads runs until the stream ends, and passes them to add, which may block while too
// many commands wait.
func (r *Receiver) Receive(add func(run []byte) error) error {
	var size [4]byte
	var buf []byte
	stream := bufio.NewReader(r)
	for {
		if _, err := io.ReadFull(stream, size[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(size[:])
		if n&fillFlag != 0 {
			if err := r.fill(stream, n&^fillFlag); err != nil {
				return err
			}
			continue
		}
		if n > MaxRun {
			return fmt.Errorf("run of %d bytes", n)
		}
		run, err := readRun(stream, buf[:0], int(n))
		if err != nil {
			return err
		}
		r.carried = true
		r.holding.Store(true)
		err = add(run)
		if r.holding.Store(false); err != nil {
			return err
		}
		if buf = run; cap(buf) > propose.MaxSpareBytes {
			buf = nil
		}
	}
}

// readRun reads n bytes from r and appends them to b. It allocates in steps as the bytes
// arrive, so a large length without data doesn't cause a large allocation.
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
