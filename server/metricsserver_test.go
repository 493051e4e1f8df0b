package server

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// numbers scrapes a server. It returns values by name, with the quantile appended.
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

func TestElections(t *testing.T) {
	t.Parallel()
	if got := numbers(t, startServer(t, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0", Handler: metrics.Handler} })); got["quorum_size"] != "" || got["election_time_count"] != "0" {
		t.Errorf("standalone: quorum of %q, %q elections", got["quorum_size"], got["election_time_count"])
	}
	for _, n := range []int{2, 3} {
		e := startEnsemble(t, n, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0", Handler: metrics.Handler} })
		leader, others := e.leader()
		if got := numbers(t, leader); got["quorum_size"] != strconv.Itoa(n) || got["leader_uptime"] == "" || got["election_time_count"] == "0" {
			t.Errorf("leader of %d: %v", n, got)
		}
		want := strconv.Itoa(n - 1)
		eventually(t, "the leader has heard of its followers", func() bool {
			got := numbers(t, leader)
			return got["synced_followers"] == want && got["learners"] == want && got["synced_observers"] == "0"
		})
		if got := numbers(t, others[0]); got["quorum_size"] != strconv.Itoa(n) || got["learners"] != "" || got["election_time_count"] == "0" {
			t.Errorf("follower: %v", got)
		}
	}
}

// TestNamesAreZooKeepers compares the names with mntr of ZooKeeper 3.9.5.
func TestNamesAreZooKeepers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../internal/ops/admin/testdata/leader.txt")
	if err != nil {
		t.Fatal(err)
	}
	e := startEnsemble(t, 3)
	leader, _ := e.leader()
	for _, m := range sourceOf(leader).Metrics() {
		switch {
		case m.Name == "config_file_differs", strings.HasPrefix(m.Name, "behaviour_level"), strings.HasPrefix(m.Name, "raft_"), strings.HasPrefix(m.Name, "clients_refused_"):
			continue // ours: ZooKeeper has no name for it
		case strings.HasSuffix(m.Name, "_ack_latency"):
			continue // one line for each follower that has acknowledged something
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
			if c, err = fromZooCfg(z, allFormats()); err == nil && c.Metrics != nil {
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

// TestMetricsPortInUse: a busy metrics port is an error, because the operator asked for
// it.
func TestMetricsPortInUse(t *testing.T) {
	t.Parallel()
	first := startServer(t, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0", Handler: metrics.Handler} })
	s, err := Start(t.Context(), Config{Memory: true, Metrics: &Metrics{Addr: first.MetricsAddr(), Handler: metrics.Handler}})
	if err == nil || !strings.Contains(err.Error(), "metricsProvider.httpPort") {
		t.Errorf("started: %v", err)
	}
	if s != nil {
		_ = s.Close()
	}
}
