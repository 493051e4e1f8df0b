package bootstrap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// TestProbeBounds: a probe with parts that no server sends is refused.
func TestProbeBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", 1000)
	for _, tt := range []struct {
		probe Probe
		want  string
	}{
		{Probe{}, ""},
		{Probe{ID: 255, As: membership.JoinerID(255, 1<<64-1), Addr: "[::1]:65535", Phase: PhaseMember, LeaderAddr: membership.Placeholder(255)}, ""},
		{Probe{ID: 1, Addr: ":2888"}, ""},
		{Probe{ID: 1, Addr: strings.Repeat("h", membership.MaxHost) + ":2888", Bound: &Plan{Servers: []Server{{Addr: "a:1"}, {ID: 2, Addr: membership.Placeholder(2)}}}}, ""},
		{Probe{ID: 256}, "server id 256"},
		{Probe{ID: 1, As: raft.ServerID("1." + long)}, "a ServerID of"},
		{Probe{ID: 1, As: "1.x"}, "digits and dots"},
		{Probe{ID: 1, Addr: "h:" + strings.Repeat("0", 1000) + "1"}, "host and a port"},
		{Probe{ID: 1, Addr: "h:http"}, "host and a port"},
		{Probe{ID: 1, Addr: long + ":1"}, "host and a port"},
		{Probe{ID: 1, Phase: Phase(long)}, "a phase of"},
		{Probe{ID: 1, LeaderAddr: long}, "an address of"},
		{Probe{ID: 1, List: strings.Repeat("x", membership.MaxListBytes+1)}, "a list of"},
		{Probe{ID: 1, Refusal: strings.Repeat("x", maxRefusal+1)}, "a refusal of"},
		{Probe{ID: 1, Bound: &Plan{Servers: make([]Server, membership.MaxServers+1)}}, "a formation plan of more"},
		{Probe{ID: 1, Bound: &Plan{Servers: []Server{{Addr: long}}}}, "a formation plan with an address"},
	} {
		if err := tt.probe.Check(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.200q: %v, want %q", fmt.Sprint(tt.probe), err, tt.want)
		}
	}
}
