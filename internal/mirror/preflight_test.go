package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/words"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// answers are the four-letter words of a fake server.
type answers map[string]string

// follower returns the answers of a healthy server.
func follower() answers {
	return answers{
		"srvr": "Zookeeper version: 3.9.5-abc, built on 2025\nLatency min/avg/max: 0/0.0/0\nReceived: 5\nConnections: 7\nOutstanding: 0\nZxid: 0x100000005\nMode: follower\nNode count: 5\n",
		"mntr": "zk_version\t3.9.5-abc, built on 2025\nzk_server_state\tfollower\nzk_local_sessions\t0\nzk_digest_mismatches_count\t0\n",
		"conf": "clientPort=2181\nsecureClientPort=-1\nserverId=2\nmembership: \nserver.1=zk1:2888:3888:participant\n",
	}
}

func leading(a answers) answers {
	a["srvr"] = strings.Replace(a["srvr"], "follower", "leader", 1)
	return a
}

// with returns the answers with another one.
func (a answers) with(word, old, text string) answers {
	a[word] = strings.Replace(a[word], old, text, 1)
	return a
}

// dialer connects to fake servers. An address that has none refuses connections.
func dialer(servers map[string]answers) words.Dial {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		a, up := servers[addr]
		if !up {
			return nil, errors.New("connection refused")
		}
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			word := make([]byte, 4)
			if _, err := io.ReadFull(there, word); err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, there) }() // the rest of a handshake
			text, listed := a[string(word)]
			if !listed {
				text = string(word) + " is not executed because it is not in the whitelist.\n"
			}
			if text != "mute" {
				_, _ = io.WriteString(there, text)
			} else {
				<-ctx.Done()
			}
		}()
		return here, nil
	}
}

// healthy returns checks that find nothing, of an ensemble of two.
func healthy() (*Preflight, map[string]answers) {
	servers := map[string]answers{"zk1:2181": leading(follower()), "zk2:2181": follower()}
	return &Preflight{
		Old:    &Old{Servers: []OldServer{{ID: 1, Client: "zk1:2181"}, {ID: 2, Client: "zk2:2181"}}, Settings: map[string]string{}},
		Mirror: Status{Exact: true, Zxid: 0x100000005, Proposed: 0x100000005, Heard: time.Now(), Compared: 5},
		ACLs:   maps.All(map[string][]proto.ACL{"/": proto.OpenACL()}),
		Dial:   dialer(servers),
	}, servers
}

func TestPreflightOfAHealthyEnsemble(t *testing.T) {
	t.Parallel()
	p, _ := healthy()
	fs := p.Check(t.Context())
	for i := range fs {
		if fs[i].Severity != OK {
			t.Error(fs[i].String())
		}
	}
	if len(fs) != 7 || fs.Blocked() {
		t.Errorf("%d findings", len(fs))
	}
	if text := fs[0].String(); text != "ok      servers: server 1 (zk1:2181): 3.9.5, leader at zxid 0x100000005, connections: 7" {
		t.Errorf("%q", text)
	}
}

// TestPreflight lists states and their findings.
func TestPreflight(t *testing.T) {
	t.Parallel()
	type change func(*Preflight, map[string]answers)
	second := func(word, old, text string) change {
		return func(_ *Preflight, s map[string]answers) { s["zk2:2181"].with(word, old, text) }
	}
	status := func(f func(*Status)) change { return func(p *Preflight, _ map[string]answers) { f(&p.Mirror) } }
	setting := func(key, value string) change {
		return func(p *Preflight, _ map[string]answers) { p.Old.Settings[key] = value }
	}
	for name, c := range map[string]struct {
		change   change
		severity Severity
		want     string
	}{
		"down":      {func(_ *Preflight, s map[string]answers) { delete(s, "zk2:2181") }, Blocks, "server 2 (zk2:2181): it does not answer: connection refused"},
		"no quorum": {func(_ *Preflight, s map[string]answers) { s["zk2:2181"] = notServing() }, Blocks, "server 2 (zk2:2181): the server does not serve clients"},
		"mute": {func(_ *Preflight, s map[string]answers) {
			s["zk2:2181"] = answers{"srvr": "mute", "mntr": "mute", "conf": "mute", "dump": "mute"}
		}, Blocks, "no answer to dump"},
		"unknown address": {func(p *Preflight, _ map[string]answers) { p.Old.Servers[1].Client = "" }, Blocks, "name it with --clients"},
		"only TLS": {func(p *Preflight, s map[string]answers) {
			p.Old.Servers[1].Client, p.Old.Servers[1].Secure = "", "zk2:2281"
			s["zk2:2281"] = answers{"\x16\x03\x01\x05": "\x15\x03\x03\x00\x02\x02\x28"}
		}, Warns, "server 2 (zk2:2281): the port accepts only TLS (remote error: tls: handshake failure), so it can't be asked"},
		"TLS": {func(_ *Preflight, s map[string]answers) {
			s["zk2:2181"] = answers{"srvr": "\x15\x03\x01", "mntr": "\x15\x03\x01", "conf": "\x15\x03\x01", "dump": "\x15\x03\x01"}
		}, Warns, "accepts only TLS"},
		"whitelist":      {func(_ *Preflight, s map[string]answers) { delete(s["zk2:2181"], "mntr") }, Warns, "it does not answer mntr, dump\n        → add them to 4lw.commands.whitelist"},
		"new version":    {second("srvr", "3.9.5", "3.10.0"), Blocks, "it is 3.10.0; this program knows 3.4 to 3.9"},
		"other version":  {second("srvr", "3.9.5", "4.0.0"), Blocks, "it is 4.0.0"},
		"old version":    {second("srvr", "3.9.5", "3.3.6"), Blocks, "it is 3.3.6"},
		"mixed versions": {second("srvr", "3.9.5", "3.8.4"), Warns, "different versions: 3.8.4, 3.9.5"},
		"no version":     {func(_ *Preflight, s map[string]answers) { s["zk2:2181"] = answers{"dump": "Session Sets (1)/(1):\n"} }, Warns, "its version cannot be seen"},
		"standalone":     {second("srvr", "follower", "standalone"), Blocks, "server 2 (zk2:2181): it is standalone"},
		"two leaders":    {second("srvr", "follower", "leader"), Blocks, "2 servers say that they lead"},
		"no leader":      {func(_ *Preflight, s map[string]answers) { s["zk1:2181"] = follower() }, Blocks, "no server leads"},
		"local sessions": {second("mntr", "local_sessions\t0", "local_sessions\t17"), Warns, "local sessions: 17"},
		"dump": {func(_ *Preflight, s map[string]answers) {
			delete(s["zk2:2181"], "mntr")
			s["zk2:2181"]["dump"] = "SessionTracker dump:\nLocal Session Sets (2)/(18):\n"
		}, Warns, "local sessions: 18"},
		"unseen sessions": {func(_ *Preflight, s map[string]answers) { delete(s["zk2:2181"], "mntr") }, Warns, "cannot see whether it has local sessions"},
		"local by file":   {setting("localSessionsEnabled", "true"), Warns, "the old zoo.cfg has localSessionsEnabled=true"},
		"inexact":         {status(func(s *Status) { s.Exact = false }), Blocks, "the copy is not exact yet"},
		"silent":          {status(func(s *Status) { s.Heard = s.Heard.Add(-time.Minute) }), Blocks, "no message from the old leader for 1m0s"},
		"never heard":     {status(func(s *Status) { s.Heard = time.Time{} }), Blocks, "no message from the old leader"},
		"lag":             {status(func(s *Status) { s.Proposed += 10_001 }), Blocks, "the copy is 10001 transactions behind the leader"},
		"later epoch":     {status(func(s *Status) { s.Proposed += 1 << 32 }), Blocks, "the leader in a later epoch at 0x200000005"},
		"no digest":       {status(func(s *Status) { s.Compared = 0 }), Warns, "no digest has been compared"},
		"digest mismatch": {second("mntr", "mismatches_count\t0", "mismatches_count\t3"), Warns, "it reports 3 digest mismatches"},
		"foreign scheme":  {func(p *Preflight, _ map[string]answers) { p.ACLs = acls("/a", "kerberos") }, Blocks, `the scheme "kerberos", which is in the lists of /a`},
		"disabled scheme": {func(p *Preflight, _ map[string]answers) { p.ACLs, p.Schemes = acls("/a", "x509"), []string{"world"} }, Blocks, `the scheme "x509"`},
		"unseen ACLs":     {func(p *Preflight, _ map[string]answers) { p.ACLs = nil }, Warns, "were not checked"},
		"plug-in":         {setting("authProvider.1", "com.example.LDAP"), Warns, "authProvider.1=com.example.LDAP"},
		"group plug-in":   {setting("authProvider.x509", "org.apache.zookeeper.server.auth.znode.groupacl.X509ZNodeGroupAclProvider"), Warns, "zkgo does not run it"},
		"unseen plug-ins": {func(p *Preflight, _ map[string]answers) { p.Old.Settings = nil }, Warns, "plug-ins cannot be seen from outside"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, servers := healthy()
				c.change(p, servers)
				fs := p.Check(t.Context())
				for i := range fs {
					if fs[i].Severity == c.severity && strings.Contains(fs[i].String(), c.want) {
						return
					}
				}
				var text strings.Builder
				must.Do(t, fs.Write(&text))
				t.Errorf("missing %s: %q in:\n%s", c.severity, c.want, text.String())
			})
		})
	}
}

func notServing() answers {
	const text = "This ZooKeeper instance is not currently serving requests\n"
	return answers{"srvr": text, "mntr": text, "conf": text, "dump": text}
}

func acls(path, scheme string) func(func(string, []proto.ACL) bool) {
	return maps.All(map[string][]proto.ACL{path: {{ID: proto.ID{Scheme: scheme}}}})
}

// A leader that has proposed nothing in its epoch yet is no lag. Plug-ins that zkgo has are no
// finding, and neither is the digest of releases that have none.
func TestPreflightFindsNothing(t *testing.T) {
	t.Parallel()
	p, servers := healthy()
	p.Mirror.Proposed = 0x200000000
	p.Old.Settings["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	for _, a := range servers {
		a.with("srvr", "3.9.5", "3.4.14").with("mntr", "zk_local_sessions", "zk_x")
	}
	fs := p.Check(t.Context())
	for i := range fs {
		if fs[i].Severity == Blocks || fs[i].Check == "local sessions" && fs[i].Severity != OK || fs[i].Check == "plug-ins" && fs[i].Severity != OK {
			t.Error(fs[i].String())
		}
	}
}

// The checks learn ids and secure ports, and show long lists by their beginning.
func TestPreflightLearns(t *testing.T) {
	t.Parallel()
	p, servers := healthy()
	servers["zk2:2181"].with("conf", "secureClientPort=-1", "secureClientPort=2281")
	p.Old.Servers[1].ID = -1
	p.ACLs = func(yield func(string, []proto.ACL) bool) {
		for i := range 10 {
			if !yield(fmt.Sprintf("/%d", i), []proto.ACL{{ID: proto.ID{Scheme: "ldap"}}, {ID: proto.ID{Scheme: "ldap"}}}) {
				return
			}
		}
	}
	fs := p.Check(t.Context())
	if s := p.Old.Servers[1]; s.ID != 2 || s.Secure != "zk2:2281" {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(fs[0].Text, "/0, /1, /2, …") || !fs.Blocked() {
		t.Error(fs[0].String())
	}
	var buf bytes.Buffer
	must.Do(t, json.NewEncoder(&buf).Encode(fs[:1]))
	if text := buf.String(); !strings.HasPrefix(text, `[{"severity":"blocks","check":"ACL schemes","text":"`) {
		t.Error(text)
	}
}

// TestModesOfZkgo: a single zkgo server may be followed; a single ZooKeeper has no quorum port.
func TestModesOfZkgo(t *testing.T) {
	t.Parallel()
	for _, zkgo := range []bool{false, true} {
		var fs Findings
		fs.modes([]*seen{{server: &OldServer{ID: -1}, mode: "standalone"}}, zkgo)
		if fs.Blocked() == zkgo {
			t.Errorf("zkgo %v: %+v", zkgo, fs)
		}
	}
}

// TestLost: what only a lost server could tell doesn't block; a state that is wrong does.
func TestLost(t *testing.T) {
	t.Parallel()
	var fs Findings
	fs.add(Blocks, "servers", "it does not answer", "")
	fs.add(Blocks, "lag", "not heard", "")
	if fs = fs.Lost(); fs.Blocked() {
		t.Errorf("%+v", fs)
	}
	fs.add(Blocks, "ACL schemes", "unknown", "")
	if fs = fs.Lost(); !fs.Blocked() {
		t.Errorf("%+v", fs)
	}
}
