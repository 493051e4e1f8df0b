package forward

import (
	"encoding/binary"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestStreamWithoutProgress: the leader's heartbeats come, but report that no more of the
// sent bytes arrive. That ends the stream, unless the leader is holding.
func TestStreamWithoutProgress(t *testing.T) {
	t.Parallel()
	for name, holding := range map[string]byte{"lost": 0, "held back": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer theirs.Close()
				var received atomic.Uint64
				go func() { // reads everything
					buf := make([]byte, 1<<10)
					for {
						n, err := theirs.Read(buf)
						if err != nil {
							return
						}
						received.Add(uint64(n))
					}
				}()
				const limit = time.Second
				s := NewSender(ours, limit, func(d time.Duration) time.Duration { return d })
				s.beats = true
				watched := make(chan struct{})
				go func() {
					defer close(watched)
					s.Watch(slog.New(slog.DiscardHandler))
				}()
				stop := make(chan struct{})
				stuck := atomic.Bool{}
				go func() { // sends heartbeats; once stuck is set, received stops growing
					told := uint64(0)
					for {
						select {
						case <-stop:
							return
						case <-time.After(limit / signsPerStall):
						}
						flag := byte(0)
						if !stuck.Load() {
							told = received.Load()
						} else {
							flag = holding
						}
						_, _ = theirs.Write(append(binary.BigEndian.AppendUint64(nil, told), flag))
					}
				}()
				for range 100 {
					if err := s.Send(make([]byte, 100)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(limit / 10)
				}
				stuck.Store(true)
				_ = s.Send(make([]byte, 100))
				began := time.Now()
				select {
				case <-s.Ended():
					if holding == 1 || time.Since(began) > limit+limit/signsPerStall {
						t.Errorf("it ended after %v", time.Since(began))
					}
				case <-time.After(time.Minute):
					if holding == 0 {
						t.Error("it goes on")
					}
				}
				s.Close()
				close(stop)
				<-watched
			})
		})
	}
}
