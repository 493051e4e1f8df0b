package membership

import (
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// three are servers on one host.
const three = "server.1=127.0.0.1:2881:3881:participant;127.0.0.1:2181\nserver.2=127.0.0.1:2882:3882:participant;127.0.0.1:2182\n" +
	"server.3=127.0.0.1:2883:3883:participant;127.0.0.1:2183"

// TestReconfigNeedsFreeAddresses: a list that the servers couldn't listen with is refused,
// whatever kind of reconfig asks for it, and so is one that gives a server the address of
// another one before that has moved away. Old lines count only if they conflict with
// something new.
func TestReconfigNeedsFreeAddresses(t *testing.T) {
	t.Parallel()
	const (
		apart  = "server.1=a:1:2;5\nserver.2=b:1:2;5\nserver.3=c:1:2;5"
		shared = "server.1=127.0.0.1:1:2;5\nserver.2=127.0.0.1:3:4;5\nserver.3=127.0.0.1:6:7;5" // ports forwarded to three machines
	)
	for _, tt := range []struct{ now, joining, leaving, members, why string }{
		{now: three, joining: "4=127.0.0.1:2884:3884;127.0.0.1:2184"},
		{now: three, joining: "4=127.0.0.1:2881:3884;127.0.0.1:2184", why: "server.1 and server.4 have the same quorum address 127.0.0.1:2881"},
		{now: three, joining: "4=[::ffff:127.0.0.1]:02881:3884;127.0.0.1:2184", why: "the same quorum address 127.0.0.1:2881"},
		{now: three, joining: "4=localhost:2881:3884;127.0.0.1:2184"}, // a name may be any host
		{now: three, joining: "4=127.0.0.1:2884:3884;127.0.0.1:2181", why: "client address of server.1"},
		{now: three, joining: "4=127.0.0.1:2884:3884;2181", why: "client address of server.1"},
		{now: three, joining: "4=127.0.0.1:2884:3884;127.0.0.1:2881", why: "quorum address of server.1"},
		{now: three, joining: "1=127.0.0.1:2881:3881;127.0.0.1:2881", why: "the port for clients is the one for the other servers"},
		{now: three, joining: "1=127.0.0.1:2881:3881;2881", why: "the port for clients"},
		{now: three, joining: "1=127.0.0.1:2881:3881|127.0.0.2:2891:3891;2891", why: "the port for clients"},
		{now: three, joining: "1=127.0.0.1:2881:3881|127.0.0.1:2881:3891;2191", why: "127.0.0.1:2881 twice"},
		{now: three, members: strings.Replace(three, "127.0.0.1:2881", "127.0.0.1:2882", 1), why: "the same quorum address 127.0.0.1:2882"},
		{now: three, members: strings.Replace(three, ";127.0.0.1:2181", ";127.0.0.1:2182", 1), why: "client address"},
		{now: three, members: three},
		// The addresses that the servers have now.
		{now: three, joining: "1=127.0.0.1:2881:3881;127.0.0.1:2182,2=127.0.0.1:2882:3882;127.0.0.1:2181", why: "server.2 now: give server.2 another one first"},
		{now: three, joining: "1=127.0.0.1:2882:3881;127.0.0.1:2181,2=127.0.0.1:2881:3882;127.0.0.1:2182", why: "is the quorum address of server.2 now"},
		{now: three, joining: "1=127.0.0.1:2181:3881;127.0.0.1:2881", why: "is the client address of server.1 now"},
		{now: three, joining: "1=127.0.0.1:2881:3881;127.0.0.1:2182,2=127.0.0.1:2882:3882;127.0.0.1:2192", why: "server.2 now"},
		{now: three, joining: "1=127.0.0.1:2883:3881;127.0.0.1:2183", leaving: "3"},
		{now: three, joining: "3=127.0.0.1:2893:3893;127.0.0.1:2193,4=127.0.0.1:2883:3883;127.0.0.1:2183"},
		{now: apart, members: strings.NewReplacer("=a", "=b", "=b", "=a").Replace(apart)}, // the servers change places with their machines
		{now: apart, joining: "1=a:1:2:observer;5"},
		{now: apart, joining: "1=a:1:2;6"},
		// A server keeps its port and listens at another set of addresses.
		{now: three, joining: "1=127.0.0.1:2881:3881;2181"},
		{now: three, members: strings.ReplaceAll(three, ";127.0.0.1:", ";")},
		{now: strings.ReplaceAll(three, ";127.0.0.1:", ";"), members: three},
		{now: three, joining: "1=127.0.0.1:2881:3881;0.0.0.0:2182", why: "client address of server.2"},
		// Hosts that no server starts with.
		{now: apart, joining: "4=d\u00fc:1:2;5", why: "is not a host"},
		{now: apart, joining: "4=d:1:2;\"d\":5", why: "is not a host"},
		// A list that conflicts already.
		{now: shared, leaving: "3"},
		{now: shared, joining: "1=127.0.0.1:1:2:observer;5"},
		{now: shared, joining: "1=127.0.0.1:8:2;5"},
		{now: shared, joining: "4=127.0.0.1:8:9;5"},
		{now: shared, joining: "4=127.0.0.1:8:9;127.0.0.1:5", why: "client address"},
		{now: shared, joining: "4=127.0.0.1:8:9;6", why: "quorum address of server.3"},
	} {
		now, err := Parse([]byte(tt.now))
		if err != nil {
			t.Fatal(err)
		}
		null := func(s string) string {
			if s == "" {
				return proto.NullString
			}
			return s
		}
		q := &proto.ReconfigRequest{Joining: null(tt.joining), Leaving: null(tt.leaving), NewMembers: null(tt.members), CurConfigID: -1}
		want := proto.Ok
		if tt.why != "" {
			want = proto.ErrBadArguments
		}
		policy := tree.MultiAddress
		next, code := now.Next(q, policy)
		if code != want {
			t.Errorf("%+v: %v, want %v", tt, code, want)
		}
		if code == proto.Ok {
			if err := SameAddress(next.Members); err != nil {
				t.Errorf("%+v: no server starts: %v", tt, err)
			}
			continue
		}
		if asked, code := now.Asked(q, policy); code == proto.Ok {
			if err := now.Conflict(asked); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%+v: %v", tt, err)
			}
		} else {
			t.Errorf("%+v: %v without the check of the addresses", tt, code)
		}
	}
}
