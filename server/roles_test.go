package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/ops/admin"
	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/proto"
)

// TestEveryViewFollowsARoleChange makes a follower and the leader an observer, and then
// a participant again. Two seconds later every command and metric shows the new role.
func TestEveryViewFollowsARoleChange(t *testing.T) {
	inEnsemble(t, 4, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		for _, s := range []*Server{others[0], leader} {
			w := connect(t, e.servers[s.cfg.Quorum.ID%4])
			for _, role := range []string{"observer", "participant"} {
				w.must(proto.OpReconfig, &proto.ReconfigRequest{
					Joining: fmt.Sprintf("server.%d=%s:2888:3888:%s;2181", s.cfg.Quorum.ID, host(int(s.cfg.Quorum.ID)), role),
					Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1})
				time.Sleep(2 * time.Second)
				e.viewsOf(t, s, role)
			}
		}
	}, func(c *Config) { c.Quorum.Reconfig, c.Auth.SkipACL = true, true })
}

// viewsOf checks how a server and its leader show the server's role.
func (e *ensemble) viewsOf(t *testing.T, s *Server, role string) {
	t.Helper()
	mode, voting, peerType := "follower", "true", "0"
	if role == "observer" {
		mode, voting, peerType = role, "false", "1"
	}
	word := func(name string) string { return answer(t, s, name) }
	page := func(h http.Handler, path string) string {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", superAuth)
		h.ServeHTTP(rec, r)
		return strings.ReplaceAll(rec.Body.String(), " ", "")
	}
	commands := admin.Handler(adminSourceOf(s), "/commands", admin.Options{})
	lead, _ := e.leader()
	observers := strings.Count(role, "observer")
	for where, want := range map[string][2]string{
		"srvr":     {word("srvr"), "Mode: " + mode + "\n"},
		"stat":     {word("stat"), "Mode: " + mode + "\n"},
		"mntr":     {word("mntr"), "zk_server_state\t" + mode + "\n"},
		"conf":     {word("conf"), "peerType=" + peerType + "\n"},
		"zabstate": {page(commands, "/commands/zabstate"), `"voting":` + voting},
		"stats":    {page(commands, "/commands/stats"), `"server_state":"` + mode + `"`},
		"metrics":  {page(metrics.Handler(sourceOf(lead), false), "/metrics"), fmt.Sprintf("\nsynced_observers%d", observers)},
	} {
		if !strings.Contains(want[0], want[1]) {
			t.Errorf("server %d is to be a %s, and %s does not have %q:\n%s", s.cfg.Quorum.ID, role, where, want[1], want[0])
		}
	}
	if p := sourceOf(lead).Server(); p.SyncedObservers != observers || p.SyncedFollowers != 3-observers {
		t.Errorf("server %d is to be a %s, and its leader counts %d followers and %d observers", s.cfg.Quorum.ID, role, p.SyncedFollowers, p.SyncedObservers)
	}
}
