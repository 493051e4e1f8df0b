package server

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
	"github.com/zkgo/zkgo/internal/zoocfg"
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

// TestQuorumPortIsWaitedFor simulates a server whose own name resolves late.
func TestQuorumPortIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, tries, tried int
		ok                 bool
	}{
		{1, 3, 1, true}, {3, 3, 3, true}, {4, 3, 3, false}, {2, 1, 1, false}, {500, -1, 500, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out logBuffer
			late := &lateNetwork{from: tt.from}
			n := patientNetwork{late, t.Context(), tt.tries, bindPause, slog.New(slog.NewTextHandler(&out, nil))}
			begin := time.Now()
			_, err := n.Listen("zk-1:2888")
			if (err == nil) != tt.ok || late.tried != tt.tried {
				t.Errorf("%+v: %v after %d attempts", tt, err, late.tried)
			}
			if err != nil && !errors.Is(err, errNoSuchHost) {
				t.Errorf("%+v: the reason is lost: %v", tt, err)
			}
			if took := time.Since(begin); took != time.Duration(tt.tried-1)*bindPause {
				t.Errorf("%+v took %v", tt, took)
			}
			if lines := strings.Count(out.String(), "\n"); lines > 1+tt.tried/bindNews {
				t.Errorf("%+v: %d lines in the log", tt, lines)
			}
		})
	}
}

// TestWaitingForTheQuorumPortEnds stops a server that would wait for ever.
func TestWaitingForTheQuorumPortEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := patientNetwork{&lateNetwork{from: 1 << 30}, ctx, -1, bindPause, slog.New(slog.DiscardHandler)}
		if _, err := n.Listen("zk-1:2888"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestBindRetryOfTheFile translates electionPortBindRetry.
func TestBindRetryOfTheFile(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{"": 3, "electionPortBindRetry=0": -1, "electionPortBindRetry=7": 7} {
		z, err := zoocfg.ParseText("zoo.cfg", "dataDir="+t.TempDir()+"\nclientPort=2181\n"+line)
		if err != nil {
			t.Fatal(err)
		}
		c, err := fromZooCfg(z)
		if c = c.withDefaults(); err != nil || c.Quorum.BindTries != want || len(z.Ignored) > 0 {
			t.Errorf("%q: %d attempts, %v, ignored %v", line, c.Quorum.BindTries, err, z.Ignored)
		}
	}
}

// Once the server has started, a port that is in use is an error at once: the caller, which
// follows a reconfig, has other things to do and tries again itself.
func TestAStartedServerDoesNotWaitForAPort(t *testing.T) {
	t.Parallel()
	starting, started := context.WithCancel(t.Context())
	started()
	late := &lateNetwork{from: 1 << 30}
	n := patientNetwork{late, starting, -1, time.Hour, slog.New(slog.DiscardHandler)}
	if _, err := n.Listen("h:1"); err == nil || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
