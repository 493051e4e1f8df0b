package server

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/raftfsm"
)

// The server logs every change of its role, even if its clients don't notice.
func TestEveryChangeOfRoleIsLogged(t *testing.T) {
	var log logBuffer
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, _ := e.leader()
		e.net.Kill(host(int(leader.cfg.Quorum.ID)))
		if err := leader.Close(); err != nil {
			t.Error(err)
		}
		var next raftfsm.Status
		eventually(t, "the others serve under another leader", func() bool {
			for _, s := range e.servers {
				if st := s.Node().Status(); s != leader && (!st.Serving || st.Leader == leader.cfg.Quorum.ID) {
					return false
				} else if s != leader {
					next = st
				}
			}
			return true
		})
		for _, s := range e.servers {
			if s == leader {
				continue
			}
			role := "follower"
			if s.cfg.Quorum.ID == next.Leader {
				role = "leader"
			}
			want := fmt.Sprintf("self=%d serving=true role=%s leader=%d epoch=%d ", s.cfg.Quorum.ID, role, next.Leader, next.Epoch)
			eventually(t, want, func() bool { return strings.Contains(log.String(), want) })
		}
		for line := range strings.Lines(log.String()) {
			lost := strings.Contains(line, "server state changed") && strings.Contains(line, "serving=false role=looking") && !strings.Contains(line, "epoch=0")
			if closed := strings.Contains(line, fmt.Sprintf("self=%d ", leader.cfg.Quorum.ID)); lost && closed == strings.Contains(line, "level=WARN") {
				t.Errorf("a server that loses its leader warns, and one that is closed does not: %s", line)
			}
		}
	}, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)).With("self", c.Quorum.ID) })
}
