package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/status"
)

type fake struct{}

func (fake) Metrics() []status.Metric {
	return []status.Metric{
		{Name: "version", Value: "3.9.5"}, {Name: "pending_syncs", Value: "0"},
		{Name: "znode_count", Value: "5", Kind: status.Gauge}, {Name: "avg_latency", Value: "0.25", Kind: status.Gauge},
		{Name: "commit_count", Value: "7", Kind: status.Counter}, {Name: "broken", Value: "x", Kind: status.Gauge},
	}
}

func (fake) Summaries() []status.Summary {
	return []status.Summary{{Name: "readlatency", Count: 3, Sum: 1.5, P50: 0.25, P90: 0.5, P99: 0.75},
		{Name: "ack_latency", Key: "2", Count: 2, Sum: 4, P50: 1}}
}

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	// The format that modern Prometheus versions prefer would add _total.
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return w.Body.String()
}

func TestHandler(t *testing.T) {
	t.Parallel()
	const want = `# HELP ack_latency Milliseconds from sending entries to a follower until it has stored them, by server id.
# TYPE ack_latency summary
ack_latency{key="2",quantile="0.5"} 1
ack_latency{key="2",quantile="0.9"} 0
ack_latency{key="2",quantile="0.99"} 0
ack_latency_sum{key="2"} 4
ack_latency_count{key="2"} 2
# HELP avg_latency Average request latency in milliseconds since the start or srst.
# TYPE avg_latency gauge
avg_latency 0.25
# HELP commit_count Transactions applied.
# TYPE commit_count counter
commit_count 7
# HELP readlatency Latency of reads in milliseconds, from reading the request to the reply.
# TYPE readlatency summary
readlatency{quantile="0.5"} 0.25
readlatency{quantile="0.9"} 0.5
readlatency{quantile="0.99"} 0.75
readlatency_sum 1.5
readlatency_count 3
# HELP znode_count Znodes in the tree.
# TYPE znode_count gauge
znode_count 5
`
	if got := scrape(t, Handler(fake{}, false)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got := scrape(t, Handler(fake{}, true))
	for _, name := range []string{"go_goroutines ", "go_memstats_heap_alloc_bytes ", "znode_count 5\n"} {
		if !strings.Contains(got, "\n"+name) {
			t.Errorf("%q is missing", name)
		}
	}
}
