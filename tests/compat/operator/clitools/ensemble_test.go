package clitools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// TestTopOfEnsemble runs top on a real ensemble, first complete and then with a dead
// server.
func TestTopOfEnsemble(t *testing.T) {
	need(t)
	servers := oracle.Ensemble(t, 3, oracle.Options{})
	var addresses []string
	for _, s := range servers {
		addresses = append(addresses, s.Addr())
	}
	all := strings.Join(addresses, ",")
	modes := func(r result) (list string) {
		var sample struct {
			Servers []struct{ Mode, Zxid, Error string }
		}
		if err := json.Unmarshal([]byte(r.out), &sample); err != nil || len(sample.Servers) != 3 {
			t.Fatalf("%+v: %v", r, err)
		}
		for _, s := range sample.Servers {
			list += " " + s.Mode
			if (s.Mode == "") != (s.Error != "") || (s.Mode == "") != (s.Zxid == "") {
				t.Errorf("%+v", s)
			}
		}
		return list
	}
	r := command(t, "", "-q", "-o", "json", "-server", all, "top", "-once")
	if got := modes(r); r.code != 0 || strings.Count(got, "leader") != 1 || strings.Count(got, "follower") != 2 {
		t.Errorf("%s: %+v", got, r)
	}
	servers[0].Stop()
	r = command(t, "", "-q", "-o", "json", "-server", all, "top", "-once")
	if got := modes(r); r.code != 1 || !strings.HasPrefix(got, "  ") || !strings.Contains(r.err, addresses[0]) {
		t.Errorf("%s: %+v", got, r)
	}
}
