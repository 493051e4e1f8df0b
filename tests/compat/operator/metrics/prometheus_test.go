package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zkgo/zkgo/tests/kit/must"
)

const (
	rulesFile = "../../../../deploy/prometheus/alerts.yml"
	rulesTest = "../../../../deploy/prometheus/alerts_test.yml"
	dashboard = "../../../../deploy/grafana/zkgo.json"
)

// names returns the metrics that a server of any role exports, as queries name them.
func names(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{"up": true} // Prometheus's own
	leader, follower, observer := ensemble(t)
	for _, s := range []interface {
		ClientAddr() string
		MetricsAddr() string
	}{leader, follower, observer, start(t)} {
		work(t, s.ClientAddr())
		for line := range strings.Lines(scrape(t, s.MetricsAddr())) {
			if name := regexp.MustCompile(`^\w+`).FindString(line); name != "" {
				all[name] = true
			}
		}
	}
	return all
}

// rule is one of the alert rules.
type rule struct{ Alert, Expr string }

func rules(t *testing.T) []rule {
	t.Helper()
	b := must.Get(os.ReadFile(rulesFile))(t)
	var file struct{ Groups []struct{ Rules []rule } }
	must.Do(t, yaml.Unmarshal(b, &file))
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 20 {
		t.Fatalf("only %d rules", len(all))
	}
	return all
}

// panels returns the expressions of the dashboard by panel title.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	b := must.Get(os.ReadFile(dashboard))(t)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must.Do(t, json.Unmarshal(b, &d))
	all := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d panels", len(all))
	}
	return all
}

var (
	notNames = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|\b(by|on|ignoring|group_left|group_right|without)\s*\([^)]*\)`)
	words    = regexp.MustCompile(`[a-zA-Z_:][\w:]*(\s*\()?`)
)

// queried returns the metrics in an expression.
func queried(expr string) []string {
	var found []string
	for _, w := range words.FindAllString(notNames.ReplaceAllString(expr, " "), -1) {
		if !strings.HasSuffix(w, "(") && !slices.Contains([]string{"and", "or", "unless", "bool"}, w) {
			found = append(found, w)
		}
	}
	return found
}

func TestQueried(t *testing.T) {
	t.Parallel()
	got := queried(`sum by (job) (rate(a_b{job="x",c=~"d"}[5m])) / on (job) group_right () e > 1 and f{g="h"}`)
	if want := []string{"a_b", "e", "f"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRulesAndDashboardUseExistingMetrics: some server should export every metric that they
// name.
func TestRulesAndDashboardUseExistingMetrics(t *testing.T) {
	t.Parallel()
	exported := names(t)
	check := func(where, expr string) {
		asked := queried(expr)
		if len(asked) == 0 {
			t.Errorf("%s: %s asks for nothing", where, expr)
		}
		for _, name := range asked {
			if !exported[name] {
				t.Errorf("%s: no server exports %s", where, name)
			}
		}
	}
	for _, r := range rules(t) {
		check(r.Alert, r.Expr)
	}
	for title, exprs := range panels(t) {
		for _, expr := range exprs {
			check(title, expr)
		}
	}
}

// TestPromtoolAcceptsTheRules checks their syntax and runs their unit tests, two for each
// rule.
func TestPromtoolAcceptsTheRules(t *testing.T) {
	need(t, "promtool")
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", rulesTest}} {
		if out, err := run("", "promtool", args...); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	b := must.Get(os.ReadFile(rulesTest))(t)
	for _, r := range rules(t) {
		for _, kind := range []string{" fires\n", " is silent\n"} {
			if !strings.Contains(string(b), "name: "+r.Alert+kind) {
				t.Errorf("there is no test that %s%s", r.Alert, strings.TrimSuffix(kind, "\n"))
			}
		}
	}
}

// TestPromtoolAcceptsTheDashboard checks its expressions as rules.
func TestPromtoolAcceptsTheDashboard(t *testing.T) {
	need(t, "promtool")
	t.Parallel()
	fill := strings.NewReplacer("$job", "zkgo", "$instance", ".*", "$__rate_interval", "1m")
	var b strings.Builder
	b.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, exprs := range panels(t) {
		for _, expr := range exprs {
			fmt.Fprintf(&b, "  - {record: \"x:y%d\", expr: %q}\n", b.Len(), fill.Replace(expr))
		}
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	must.Do(t, os.WriteFile(path, []byte(b.String()), 0o600))
	if out, err := run("", "promtool", "check", "rules", path); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// complaints are promtool's complaints about ZooKeeper's own names.
var complaints = []string{
	"counter metrics should have \"_total\" suffix",
	"non-histogram and non-summary metrics should not have \"_count\" suffix",
	"metric names should not contain abbreviated units",
	"use base unit \"seconds\" instead of \"milliseconds\"",
	"use base unit",
	"non-counter metrics should not have",
}

// TestPromtoolReadsMetrics makes promtool parse the metrics of servers of every role. We
// accept complaints about ZooKeeper's names, but no others.
func TestPromtoolReadsMetrics(t *testing.T) {
	need(t, "promtool")
	t.Parallel()
	leader, follower, observer := ensemble(t)
	for _, s := range []interface {
		ClientAddr() string
		MetricsAddr() string
	}{leader, follower, observer, start(t)} {
		work(t, s.ClientAddr())
		text := scrape(t, s.MetricsAddr())
		out, _ := run(text, "promtool", "check", "metrics") // the exit code only says that there are complaints
		for line := range strings.Lines(out) {
			if !slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(line, c) }) {
				t.Errorf("promtool: %s", line)
			}
		}
		if strings.Count(text, "# TYPE ") < 80 {
			t.Errorf("only %d metrics", strings.Count(text, "# TYPE "))
		}
	}
	if out, err := run("no metrics { at all\n", "promtool", "check", "metrics"); err == nil {
		t.Errorf("promtool takes everything: %s", out)
	}
}

// TestZooKeepersRulesFindTheirNumbers: zkgo should export the metrics of the alerts in
// ZooKeeper's monitoring guide, and the metrics of its dashboard, 10465 at grafana.com, except the
// internals of the Java server.
func TestZooKeepersRulesFindTheirNumbers(t *testing.T) {
	t.Parallel()
	exported := names(t)
	for _, name := range strings.Fields(`up znode_count num_alive_connections approximate_data_size watch_count election_time_count
		open_file_descriptor_count fsynctime_sum snapshottime_sum avg_latency
		max_file_descriptor_count ephemerals_count outstanding_requests max_latency min_latency uptime packets_received packets_sent
		quorum_size synced_followers synced_observers learners pending_syncs leader_uptime election_time_sum looking_count
		fsynctime_count readlatency updatelatency propagation_latency proposal_latency quorum_ack_latency
		prep_processor_queue_size prep_processor_request_queued sync_processor_batch_size sync_process_time commit_count snap_count diff_count
		connection_rejected connection_drop_count connection_request_count connection_revalidate_count
		node_created_watch_count node_deleted_watch_count node_changed_watch_count node_children_watch_count
		global_sessions local_sessions stale_sessions_expired sessionless_connections_expired
		bytes_received_count write_per_namespace read_per_namespace proposal_count learner_proposal_received_count
		learner_commit_received_count dbinittime startup_snap_load_time startup_txns_load_time startup_txns_loaded
		unavailable_time leader_unavailable_time follower_sync_time unsuccessful_handshake outstanding_tls_handshake response_bytes watch_bytes
		process_cpu_seconds_total process_resident_memory_bytes process_open_fds process_start_time_seconds`) {
		if !exported[name] {
			t.Errorf("no server exports %s", name)
		}
	}
}
