package server

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/status"
	"github.com/zkgo/zkgo/server/zoocfg"
)

// numbers scrapes a server: values by name, with the quantile behind it.
func numbers(t *testing.T, s *Server) map[string]string {
	t.Helper()
	code, body := fetch(t, "http://"+s.MetricsAddr()+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, body)
	}
	m := map[string]string{}
	for line := range strings.Lines(body) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && name != "#" {
			m[name] = value
		}
	}
	return m
}

// movement remembers which numbers have been seen to change.
type movement struct {
	first map[string]string
	moved map[string]bool
}

func (v *movement) note(t *testing.T, s *Server) {
	t.Helper()
	now := numbers(t, s)
	if v.first == nil {
		v.first, v.moved = now, map[string]bool{}
	}
	for name, value := range now {
		if old, seen := v.first[name]; !seen {
			v.first[name] = value
		} else if old != value {
			v.moved[name] = true
		}
	}
}

// settled are the numbers that only the system or the passing of time change,
// and those of the runtime.
func settled(name string) bool {
	return name == "max_file_descriptor_count" || strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
}

// TestEveryNumberMoves: a number that nothing changes would be a lie.
func TestEveryNumberMoves(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	e := startEnsemble(t, 3, func(c *Config) {
		c.Metrics = &Metrics{Addr: "127.0.0.1:0", Process: true}
		c.ClientAddr, c.SecureAddr, c.TLS = "127.0.0.1:0", "127.0.0.1:0", &TLS{Options: a.options()}
		c.MaxClientCnxns = 2
	})
	s, others := e.leader()
	var v movement
	v.note(t, s)
	step := func() { t.Helper(); v.note(t, s) }

	w := connect(t, s)
	w.create("/a", []byte("data"), proto.ModePersistent)
	w.create("/a/eph", nil, proto.ModeEphemeral)
	step()
	watching := connect(t, s)
	watching.get("/a", true)
	watching.call(proto.OpExists, &proto.ExistsRequest{Path: "/a/b", Watch: true})
	watching.must(proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/a", Watch: true})
	step()
	w.set("/a", strings.Repeat("x", 1000))
	w.create("/a/b", nil, proto.ModePersistent)
	watching.wantEvent(proto.EventNodeDataChanged, "/a")
	watching.wantEvent(proto.EventNodeCreated, "/a/b")
	watching.wantEvent(proto.EventNodeChildrenChanged, "/a")
	watching.get("/a/b", true)
	w.must(proto.OpDelete, &proto.DeleteRequest{Path: "/a/b", Version: -1})
	watching.wantEvent(proto.EventNodeDeleted, "/a/b")
	step()

	reattached := dial(t, s)
	reattached.handshake(proto.ConnectRequest{TimeOut: 30000, SessionID: w.resp.SessionID, Passwd: w.resp.Passwd})
	plain := dialTCP(t, s.ClientAddrs()[1], nil)
	plain.write([]byte("ruok"))
	plain.wantClosed() // it has to speak TLS there
	refused := connect(t, s)
	refused.call(proto.OpAuth, &proto.AuthPacket{Scheme: "nonsense"})
	silent := []*wire{dialTCP(t, s.ClientAddrs()[1], nil), dialTCP(t, s.ClientAddrs()[1], nil)}
	eventually(t, "two clients shake hands", func() bool { return s.stats.handshaking.Load() == 2 })
	dialTCP(t, s.ClientAddrs()[0], nil).wantClosed() // one too many of that address
	step()
	for _, w := range silent {
		_ = w.nc.Close()
	}

	// What would take long to arrange is done by hand.
	s.stats.reset()
	s.stats.latency(1, 7*millisecond)
	s.stats.dropped.Add(1)
	s.stats.expired.Add(1)
	s.outstanding.Add(1)
	s.mu.Lock()
	s.locals[1] = [proto.PasswordSize]byte{}
	s.mu.Unlock()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	step()
	_ = f.Close()
	s.outstanding.Add(-1)
	s.mu.Lock()
	delete(s.locals, 1)
	s.mu.Unlock()

	// The leader's own: it loses the others, and looks for a leader.
	for _, o := range others {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the leader has noticed", func() bool { return s.stats.looking.Load() > 0 })
	step()

	for name := range v.first {
		if name == "config_file_differs" || strings.HasPrefix(name, "behaviour_level") {
			continue // tests/ensemble, TestMixedVersions of raftfsm
		}
		if name == "quorum_size" || name == "learners" || strings.HasPrefix(name, "synced_") || strings.HasPrefix(name, "election_time") {
			continue // TestElections
		}
		if !v.moved[name] && !settled(name) {
			t.Errorf("%s is always %s", name, v.first[name])
		}
	}
	if len(v.moved) < 40 {
		t.Errorf("only %d numbers move", len(v.moved))
	}
}

func TestElections(t *testing.T) {
	t.Parallel()
	if got := numbers(t, startServer(t, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0"} })); got["quorum_size"] != "" || got["election_time_count"] != "0" {
		t.Errorf("standalone: quorum of %q, %s elections", got["quorum_size"], got["election_time_count"])
	}
	for _, n := range []int{2, 3} {
		e := startEnsemble(t, n, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0"} })
		leader, others := e.leader()
		if got := numbers(t, leader); got["quorum_size"] != strconv.Itoa(n) || got["leader_uptime"] == "" || got["election_time_count"] == "0" {
			t.Errorf("leader of %d: %v", n, got)
		}
		want := strconv.Itoa(n - 1)
		eventually(t, "the leader has heard of its followers", func() bool {
			got := numbers(t, leader)
			return got["synced_followers"] == want && got["learners"] == want && got["synced_observers"] == "0"
		})
		if got := numbers(t, others[0]); got["quorum_size"] != "" || got["election_time_count"] == "0" {
			t.Errorf("follower: %v", got)
		}
	}
}

// TestNamesAreZooKeepers holds the names against mntr of ZooKeeper 3.9.5.
func TestNamesAreZooKeepers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("admin/testdata/leader.txt")
	if err != nil {
		t.Fatal(err)
	}
	e := startEnsemble(t, 3)
	leader, _ := e.leader()
	for _, m := range leader.Status().Metrics() {
		switch m.Name {
		case "config_file_differs", "behaviour_level", "behaviour_level_known":
			continue // ours: ZooKeeper has nothing that they could be called after
		}
		if m.Name != "followers" && !strings.Contains(string(text), "monitor "+m.Name+" ") {
			t.Errorf("mntr of ZooKeeper has no %s", m.Name)
		}
		if m.Kind == status.Note && m.Value == "" {
			t.Errorf("%s is empty", m.Name)
		}
	}
}

func TestMetricsFromZooCfg(t *testing.T) {
	t.Parallel()
	const class = "metricsProvider.className=org.apache.zookeeper.metrics."
	for text, want := range map[string]string{
		"":                                 "",
		class + "impl.NullMetricsProvider": "",
		class + "prometheus.PrometheusMetricsProvider": "0.0.0.0:7000 true",
		class + "prometheus.PrometheusMetricsProvider\nmetricsProvider.httpHost=127.0.0.1\nmetricsProvider.httpPort=7001\nmetricsProvider.exportJvmInfo=false": "127.0.0.1:7001 false",
		class + "Unknown": "error",
	} {
		z, err := zoocfg.ParseText("zoo.cfg", "clientPort=0\ndataDir=/tmp/x\n"+text+"\n")
		got := ""
		if err == nil {
			var c Config
			if c, err = FromZooCfg(z); err == nil && c.Metrics != nil {
				got = c.Metrics.Addr + " " + strconv.FormatBool(c.Metrics.Process)
			}
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %q, want %q (%v)", text, got, want, err)
		}
	}
}

// TestMetricsPortInUse: whoever asked for it wants to know.
func TestMetricsPortInUse(t *testing.T) {
	t.Parallel()
	first := startServer(t, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0"} })
	s, err := Start(t.Context(), Config{Memory: true, Metrics: &Metrics{Addr: first.MetricsAddr()}})
	if err == nil || !strings.Contains(err.Error(), "metricsProvider.httpPort") {
		t.Errorf("started: %v", err)
	}
	if s != nil {
		_ = s.Close()
	}
}
