package ensemble

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/apply"
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
		e := assemble(&base{env: &Environment{Config: c.cfg}, self: membership.Member{ID: 1, QuorumAddr: "zk1.example:2888"}})
		if got := e.listenAddrs(&e.self)[0]; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCallersAreForgottenOneByOne: callers that claim many ServerIDs of one server id
// displace neither the ServerIDs of other ids nor the newest one of the same id.
func TestCallersAreForgottenOneByOne(t *testing.T) {
	t.Parallel()
	var j joins
	j.noteFrom(membership.JoinerID(3, 7), "c:3")
	j.noteFrom(membership.JoinerID(4, 1), "d:1")
	for disk := range uint64(5000) {
		j.noteFrom(membership.JoinerID(4, 1+disk), fmt.Sprint("d:", disk))
		j.noteFrom(membership.JoinerID(4, 1), "d:0")
	}
	if j.calledFrom(membership.JoinerID(3, 7)) != "c:3" || j.calledFrom(membership.JoinerID(4, 1)) != "d:0" || j.calledFrom(membership.JoinerID(4, 5000)) != "d:4999" {
		t.Error("an entry is missing")
	}
	if n := len(j.from[4]); n != MaxCallers {
		t.Errorf("%d callers", n)
	}
	if slices.ContainsFunc(j.from[4], func(c caller) bool { return c.id == membership.JoinerID(4, 100) }) {
		t.Error("an old caller is there")
	}
}

// noRaft returns the environment of a server before its Raft runs.
func noRaft() *Environment {
	return &Environment{Machine: apply.New(apply.Environment{}, 0, 0), RaftNow: func() *raft.Raft { return nil }}
}

// TestHostsOfServers checks that the names that a certificate must have come from the
// configuration, not from the servers' own announcements.
func TestHostsOfServers(t *testing.T) {
	t.Parallel()
	env := noRaft()
	for id := range uint64(3) {
		env.Config.Members = append(env.Config.Members, membership.Member{ID: id + 1, QuorumAddr: fmt.Sprintf("s%d:2888", id+1)})
	}
	e := assemble(&base{env: env})
	e.joins.seen = map[raft.ServerID]string{"2": "elsewhere:1", "2.1": "elsewhere:1"}
	its, others := e.hosts("2.1")
	if !slices.Equal(its, []string{"s2"}) || !slices.Equal(others, []string{"s1", "s3"}) {
		t.Errorf("server 2 is at %v, the others at %v", its, others)
	}
}

// TestElectingBeforeRaftRuns: a server has connections before its Raft runs. Whether it was
// removed isn't known then.
func TestElectingBeforeRaftRuns(t *testing.T) {
	t.Parallel()
	e := assemble(&base{env: noRaft()})
	if e.removed() || e.Electing() {
		t.Errorf("removed %v, electing %v", e.removed(), e.Electing())
	}
}
