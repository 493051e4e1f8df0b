package server

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/tests/kit/cost"
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
	for _, n := range cost.InShort([]int{3}, []int{2, 3}) {
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
			continue // one line for each follower that has acknowledged an entry
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

// TestMetricsTLS: a port for TLS, one for both, and credentials on either.
func TestMetricsTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, tt := range []struct {
		name, plain, secure, auth string
		unauthorized              int // status without credentials
		// which callers with credentials get the metrics: in plaintext, without a
		// certificate, with one
		http, https, alice bool
	}{
		{"plaintext", "127.0.0.1:0", "", "none", 401, true, false, false},
		{"TLS", "", "127.0.0.1:0", "none", 401, false, true, true},
		{"TLS with certificates", "", "127.0.0.1:0", "need", 401, false, false, true},
		{"one port for both", "127.0.0.1:0", "127.0.0.1:0", "none", 401, true, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			options := a.options()
			options.ClientAuth = tt.auth
			s := startServer(t, func(c *Config) {
				c.Metrics = &Metrics{Addr: tt.plain, SecureAddr: tt.secure, User: "prometheus", Password: "pw", Token: "t0ken", Handler: metrics.Handler}
				if tt.secure != "" {
					c.Metrics.TLS = &AdminTLS{KeyStores: options}
				}
			})
			if urls := s.MetricsURLs(); len(urls) != 1 || !strings.HasPrefix(urls[0], "http") || strings.HasPrefix(urls[0], "https") != (tt.plain == "") {
				t.Errorf("%v", urls)
			}
			for auth, authorized := range map[string]bool{"": false, "Bearer t0ken": true, "Basic cHJvbWV0aGV1czpwdw==": true, "Bearer other": false} {
				for _, caller := range []struct {
					scheme string
					config *tls.Config
					served bool
				}{{"http", nil, tt.http}, {"https", a.client(nil), tt.https}, {"https", a.client(alice), tt.alice}} {
					code, body, err := fetchAs(t, caller.scheme+"://"+s.MetricsAddr()+"/metrics", auth, caller.config)
					served := err == nil && code == http.StatusOK && strings.Contains(body, "znode_count")
					if served != (caller.served && authorized) || caller.served && !authorized && code != tt.unauthorized {
						t.Errorf("%s with %q: %d, %v", caller.scheme, auth, code, err)
					}
				}
			}
		})
	}
}

// TestMetricsTLSFromZooCfg: the keys are the same as in ZooKeeper 3.10. We refuse a file
// that protects the metrics but would leave them open.
func TestMetricsTLSFromZooCfg(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	options := a.options()
	store := "metricsProvider.ssl.keyStore.location=" + options.Key.Location + "\n"
	trust := "metricsProvider.ssl.trustStore.location=" + options.Trust.Location + "\n"
	password, token := write("password", "pw\n"), write("token", "t0ken\n")
	for text, want := range map[string]string{
		"": "0.0.0.0:7000  plaintext",
		"metricsProvider.httpsPort=7001\n" + store + trust:                                             " 0.0.0.0:7001 need",
		"metricsProvider.httpsPort=7001\nmetricsProvider.ssl.need.client.auth=false\n" + store + trust: " 0.0.0.0:7001 want",
		"metricsProvider.httpsPort=7001\nmetricsProvider.ssl.need.client.auth=false\n" + store:         " 0.0.0.0:7001 none",
		"metricsProvider.httpsPort=7001\nmetricsProvider.httpPort=7001\n" + store + trust:              "0.0.0.0:7001 0.0.0.0:7001 need",
		"metricsProvider.httpsPort=-1\n":                                                               "0.0.0.0:7000  plaintext",
		"metricsProvider.auth.user=p\nmetricsProvider.auth.passwordPath=" + password + "\n":            "0.0.0.0:7000  plaintext p:pw",
		"metricsProvider.auth.user=p\nmetricsProvider.auth.password=x\n":                               "0.0.0.0:7000  plaintext p:x",
		"metricsProvider.auth.tokenPath=" + token + "\n":                                               "0.0.0.0:7000  plaintext t0ken",
		"metricsProvider.httpsPort=7001\n":                                                             "error: metricsProvider.ssl.keyStore.location",
		"metricsProvider.httpsPort=7001\n" + store:                                                     "error: metricsProvider.ssl.trustStore.location",
		store + trust:                       "error: set metricsProvider.httpsPort",
		"metricsProvider.auth.user=p\n":     "error: needs a password",
		"metricsProvider.auth.password=p\n": "error: auth.user is not set",
		"metricsProvider.auth.tokenPath=" + write("empty", "\n") + "\n":                                           "error: is empty",
		"metricsProvider.auth.tokenPath=" + dir + "/nosuch\n":                                                     "error: metricsProvider.auth.tokenPath",
		"metricsProvider.auth.usr=p\n":                                                                            "error: metricsProvider.auth.usr",
		"metricsProvider.ssl.keystore.location=p\n":                                                               "error: metricsProvider.ssl.keystore.location",
		"metricsProvider.httpsPort=7001\n" + trust + "metricsProvider.ssl.keyStore.location=" + dir + "/no.pem\n": "error: TLS of the metrics, metricsProvider.ssl.*",
	} {
		text = "dataDir=" + dir + "\nclientPort=0\nadmin.enableServer=false\n" +
			"metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n" + text
		c, err := LoadConfig(write("zoo.cfg", text), allFormats())
		if says, fails := strings.CutPrefix(want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s\n%v, want %q", text, err, says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		m := c.Metrics
		got := m.Addr + " " + m.SecureAddr + " plaintext"
		if m.TLS != nil {
			got = m.Addr + " " + m.SecureAddr + " " + m.TLS.ClientAuth
		}
		if m.User != "" {
			got += " " + m.User + ":" + m.Password
		}
		if m.Token != "" {
			got += " " + m.Token
		}
		if got != want {
			t.Errorf("%s\n%q, want %q", text, got, want)
		}
	}
}
