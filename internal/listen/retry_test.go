package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

// lateNetwork can listen only from the given attempt on.
type lateNetwork struct {
	quorum.Network
	from, tried int
}

var errNoSuchHost = errors.New("lookup zk-1: no such host")

func (n *lateNetwork) Listen(string) (net.Listener, error) {
	if n.tried++; n.tried < n.from {
		return nil, errNoSuchHost
	}
	return &net.TCPListener{}, nil
}

// TestQuorumPortIsWaitedFor simulates a server with a name that resolves late.
func TestQuorumPortIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, tries, tried int
		ok                 bool
	}{
		{1, 3, 1, true}, {3, 3, 3, true}, {4, 3, 3, false}, {2, 1, 1, false}, {500, -1, 500, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			late := &lateNetwork{from: tt.from}
			n := PatientNetwork{late, t.Context(), Retry{tt.tries, Pause, slog.New(slog.NewTextHandler(&out, nil))}}
			begin := time.Now()
			_, err := n.Listen("zk-1:2888")
			if (err == nil) != tt.ok || late.tried != tt.tried {
				t.Errorf("%+v: %v after %d attempts", tt, err, late.tried)
			}
			if err != nil && !errors.Is(err, errNoSuchHost) {
				t.Errorf("%+v: the reason is lost: %v", tt, err)
			}
			if took := time.Since(begin); took != time.Duration(tt.tried-1)*Pause {
				t.Errorf("%+v took %v", tt, took)
			}
			if lines := strings.Count(out.String(), "\n"); lines > 1+tt.tried/news {
				t.Errorf("%+v: %d lines in the log", tt, lines)
			}
		})
	}
}

// TestWaitingForTheQuorumPortEnds stops a server that would wait forever.
func TestWaitingForTheQuorumPortEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := PatientNetwork{&lateNetwork{from: 1 << 30}, ctx, Retry{-1, Pause, slog.New(slog.DiscardHandler)}}
		if _, err := n.Listen("zk-1:2888"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Once the server has started, a port that is in use should be an error immediately: the
// caller follows a reconfig and tries again itself.
func TestAStartedServerDoesNotWaitForAPort(t *testing.T) {
	t.Parallel()
	starting, started := context.WithCancel(t.Context())
	started()
	late := &lateNetwork{from: 1 << 30}
	n := PatientNetwork{late, starting, Retry{-1, time.Hour, slog.New(slog.DiscardHandler)}}
	if _, err := n.Listen("h:1"); err == nil || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestHostNamesAreWaitedFor simulates a server with a name that resolves late. Other errors
// are final.
func TestHostNamesAreWaitedFor(t *testing.T) {
	t.Parallel()
	unknown := &net.OpError{Op: "listen", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "zk-1", IsNotFound: true}}
	noPort := &net.OpError{Op: "listen", Net: "tcp", Err: &net.DNSError{Err: "unknown port", Name: "tcp/x", IsNotFound: true}}
	for _, tt := range []struct {
		err                error
		from, tries, tried int
		ok                 bool
	}{
		{unknown, 1, 3, 1, true}, {unknown, 3, 3, 3, true}, {unknown, 4, 3, 3, false}, {unknown, 500, -1, 500, true},
		{noPort, 3, 3, 1, false}, {&net.OpError{Op: "listen", Net: "tcp", Err: errNoSuchHost}, 3, 3, 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			r := Retry{tt.tries, Pause, slog.New(slog.NewTextHandler(&out, nil))}
			begin, tried := time.Now(), 0
			_, err := r.AwaitName(t.Context(), Port{"clientPort", "zk-1:2181"}, func(string) (net.Listener, error) {
				if tried++; tried < tt.from {
					return nil, tt.err
				}
				return &net.TCPListener{}, nil
			})
			if (err == nil) != tt.ok || tried != tt.tried || !tt.ok && !errors.Is(err, tt.err) {
				t.Errorf("%+v: %v after %d attempts", tt, err, tried)
			}
			if took := time.Since(begin); took != time.Duration(tt.tried-1)*Pause {
				t.Errorf("%+v took %v", tt, took)
			}
			if lines := strings.Count(out.String(), "setting=clientPort address=zk-1:2181"); lines != (tt.tried+news-2)/news {
				t.Errorf("%+v: %d lines in the log", tt, lines)
			}
		})
	}
}
