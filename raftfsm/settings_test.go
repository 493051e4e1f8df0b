package raftfsm

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// TestDefaultsAreTheSame: an empty Config means the same as one of package server, and as
// a zoo.cfg without settings. Every number that withDefaults sets is in internal/defaults.
func TestDefaultsAreTheSame(t *testing.T) {
	t.Parallel()
	c, err := Config{Memory: true}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"TickTime": defaults.TickTime, "SyncLimit": defaults.SyncLimit,
		"Log.SnapCount": defaults.SnapCount, "Log.SnapBytes": int64(defaults.SnapBytes), "Log.SnapRetain": defaults.SnapRetain,
		"Containers.Interval": defaults.ContainerInterval, "Containers.MaxPerMin": defaults.ContainerMaxPerMin,
	}
	var check func(group string, v reflect.Value)
	check = func(group string, v reflect.Value) {
		for i := range v.NumField() {
			name, f := group+v.Type().Field(i).Name, v.Field(i)
			if f.Kind() == reflect.Struct {
				check(name+".", f)
			}
			if !f.CanInt() || f.IsZero() && want[name] == nil {
				continue
			}
			if got := f.Interface(); got != want[name] {
				t.Errorf("%s: %v, want %v", name, got, want[name])
			}
			delete(want, name)
		}
	}
	check("", reflect.ValueOf(c))
	if len(want) > 0 {
		t.Errorf("no settings of a Config: %v", want)
	}
}

// TestOppositeSettings: a server's own configuration must not show in the state. Three
// servers with opposite switches go through changes of leader. In the end they have the
// same state, including quota counters that a client has overwritten, and one server has
// it after a restart.
func TestOppositeSettings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testOppositeSettings)
}

func testOppositeSettings(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	policies := map[uint64]tree.Policy{
		1: tree.ExtendedTypes | tree.SkipACL,
		2: tree.EnforceQuota | tree.ReconfigEnabled,
		3: tree.ExtendedTypes | tree.EnforceQuota | tree.SchemeX509 | tree.LoneVoter,
	}
	start := func(id uint64) *rig {
		return c.start(id, func(cfg *Config) { cfg.Policy, cfg.Log.SnapCount = policies[id], int(id)*40 })
	}
	for id := range policies {
		start(id)
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	codes := make(map[proto.Code]int)
	for round := range 4 {
		lead, r := c.leader()
		s := r.attach(time.Hour)
		for n := range 60 {
			o := c.sure(r, &s, func(s session.Session) command.Command { return settingsCommand(s, rnd, round*60+n) })
			codes[o.code]++
		}
		c.stop(lead)
		c.leader()
		start(lead).awaitServed()
	}
	c.settled()
	for _, code := range []proto.Code{proto.Ok, proto.ErrNoAuth, proto.ErrQuotaExceeded} {
		if codes[code] == 0 {
			t.Errorf("no command came out as %v: this shows nothing: %v", code, codes)
		}
	}
}

// settingsCommand returns a command with an outcome that depends on the leader's
// switches.
func settingsCommand(s session.Session, rnd *rand.Rand, n int) command.Command {
	closed := []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	switch n {
	case 0:
		return create(s, "/q", 0)
	case 1:
		return create(s, "/zookeeper/quota/q", 0)
	case 2:
		return write(s, proto.OpCreate, &proto.CreateRequest{Path: "/zookeeper/quota/q/zookeeper_limits", Data: []byte("count=10,bytes=1000,bytesHardLimit=1000,countHardLimit=10"), ACL: proto.OpenACL()})
	case 3:
		return write(s, proto.OpCreate, &proto.CreateRequest{Path: "/zookeeper/quota/q/zookeeper_stats", Data: []byte("count=1,bytes=4"), ACL: proto.OpenACL()})
	case 4:
		return write(s, proto.OpCreate, &proto.CreateRequest{Path: "/closed", ACL: closed})
	}
	switch rnd.IntN(7) {
	case 0:
		return set(s, "/closed", []byte(fmt.Sprint(n)))
	case 1:
		return set(s, "/zookeeper/quota/q/zookeeper_stats", fmt.Appendf(nil, "count=%d,bytes=%d", rnd.IntN(12), rnd.IntN(1200)))
	case 2:
		return write(s, proto.OpCreateTTL, &proto.CreateTTLRequest{Path: fmt.Sprintf("/q/ttl%d", n), ACL: proto.OpenACL(), Flags: 5, TTL: 1 << 30})
	case 3:
		return write(s, proto.OpDelete, &proto.DeleteRequest{Path: fmt.Sprintf("/q/%d", rnd.IntN(n)), Version: -1})
	case 4:
		return set(s, "/q", make([]byte, rnd.IntN(1500)))
	}
	return create(s, fmt.Sprintf("/q/%d", n), 0)
}
