package admin

import (
	"net/http"
	"time"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// fake is a server with values for all fields.
type fake struct {
	role     string // standalone, leader, follower, observer; "" means not serving
	readOnly bool

	mask              uint64
	resets, connReset int
}

const membership = `server.1=127.0.0.1:2881:3881:participant
server.2=[::1]:2882:3882:participant;127.0.0.1:2182
server.3=a.example:2883:3883:participant
server.4=127.0.0.1:2884:3884:observer
version=100000000`

// id returns the server's id in the ensemble; the leader is server 3.
func (f *fake) id() uint64 {
	return map[string]uint64{"follower": 1, "leader": 3, "observer": 4}[f.role]
}

func (f *fake) Server() status.Server {
	s := status.Server{
		Version: "3.9.5-x", Serving: f.role != "", ReadOnly: f.readOnly, Mode: f.role, ID: f.id(), LeaderID: 3, Epoch: 1,
		LatencyAvg: 0.25, Zxid: 0x100000005, Nodes: 7, LastReply: -1, MinReply: -1, MaxReply: -1,
		Leads: f.role == "leader", LastProposal: 1, MinProposal: 2, MaxProposal: 3, SyncedObservers: 1,
	}
	if f.role == "" {
		s.Mode = "looking"
	}
	return s
}

func (f *fake) Conns() []status.Conn {
	return []status.Conn{
		{Addr: "127.0.0.1:1", Interest: 1, SessionID: 7, LastOp: "PING", Established: time.UnixMilli(5), Timeout: time.Second, LastCxid: -1},
		{Addr: "127.0.0.1:2", Secure: true, Interest: 1},
	}
}

func (f *fake) Configuration() status.Configuration {
	c := status.Configuration{
		ClientPort: 2181, SecureClientPort: -1, ClientAddress: "[::]:2181", DataDir: "/data", LogDir: "/log",
		TickTime: 2 * time.Second, ServerID: f.id(), ListenBacklog: -1, Observer: f.role == "observer",
	}
	if f.role == "standalone" {
		c.Text = "tickTime=2000\n"
		return c
	}
	c.Ensemble, c.Membership = true, membership
	return c
}

func (f *fake) Environment() []status.Pair {
	var pairs []status.Pair
	for _, k := range []string{"zookeeper.version", "host.name", "java.version", "java.vendor", "java.home", "java.class.path",
		"java.library.path", "java.io.tmpdir", "java.compiler", "os.name", "os.arch", "os.version", "user.name", "user.home",
		"user.dir", "os.memory.free", "os.memory.max", "os.memory.total"} {
		pairs = append(pairs, status.Pair{Key: k, Value: "<" + k + ">"})
	}
	return pairs
}

func (f *fake) Sessions() status.Sessions {
	s := status.Sessions{IDs: []int64{7}, Ephemerals: map[int64][]string{7: {"/a", "/b"}, -1: {"/c"}}}
	if f.role == "leader" || f.role == "standalone" {
		s.Expiry = map[time.Time][]int64{time.UnixMilli(4000): {7}, time.UnixMilli(2000): nil}
	}
	return s
}

func (f *fake) Watches() status.WatchSummary {
	return status.WatchSummary{Conns: 1, Paths: 2, Total: 3}
}

func (f *fake) WatchesBySession() map[int64][]string { return map[int64][]string{7: {"/a"}} }

func (f *fake) WatchesByPath() map[string][]int64 { return map[string][]int64{"/a": {7}} }

func (f *fake) Dirs() (data, log int64) { return 1, 2 }

func (f *fake) Digests() []status.Digest { return []status.Digest{{Zxid: 128, Digest: 1 << 63}} }

func (f *fake) Metrics() []status.Metric {
	return []status.Metric{{Name: "version", Value: "3.9.5-x"}, {Name: "avg_latency", Value: "0.25"}, {Name: "znode_count", Value: "7"}}
}

func (f *fake) TraceMask() uint64        { return f.mask }
func (f *fake) SetTraceMask(mask uint64) { f.mask = mask }
func (f *fake) ResetServer()             { f.resets++ }
func (f *fake) ResetConns()              { f.connReset++ }

// rootAuth is the header of the administrator.
const rootAuth = "digest root:pw"

func (f *fake) Authorize(_ *http.Request, scheme, auth string) Access {
	switch {
	case scheme == "digest" && auth == "root:pw":
		return Granted
	case scheme == "digest" && auth != "":
		return Denied
	}
	return Unknown
}

func (f *fake) BeginLong(string, *http.Request, func()) (sending, end func()) {
	return func() {}, func() {}
}

func (f *fake) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	return 0x4f, time.Unix(1795292229, 0), f.role != "observer"
}
