package raftfsm

import (
	"testing"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// TestListenAddr: a server may have to listen at an address other than the one that the
// others dial. The port stays the same, because it is part of what servers compare in
// their lists.
func TestListenAddr(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"where the others dial":    {Config{}, "zk1.example:2888"},
		"everywhere":               {Config{ListenAll: true}, ":2888"},
		"behind a forwarded port":  {Config{ListenHost: "10.0.0.7"}, "10.0.0.7:2888"},
		"IPv6":                     {Config{ListenHost: "fd00::7"}, "[fd00::7]:2888"},
		"everywhere, and one more": {Config{ListenAll: true, ListenHost: "10.0.0.7"}, ":2888"},
	} {
		e := assemble(&base{env: &environment{cfg: &c.cfg}, self: membership.Member{ID: 1, QuorumAddr: "zk1.example:2888"}})
		if got := e.listenAddrs(&e.self)[0]; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
