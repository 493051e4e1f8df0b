package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
)

// Metrics of quotas have the bounds of the other metrics of namespaces: a client may set
// any number of quotas, on paths of any length.
func TestMetricsOfQuotasAreBounded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	quota := func(name string) {
		for _, path := range []string{"/zookeeper/quota/" + name, "/zookeeper/quota/" + name + "/zookeeper_limits"} {
			w.create(path, []byte("count=5,bytes=-1"), proto.ModePersistent)
		}
	}
	for i := range stats.MaxNamespaces + 50 {
		quota(fmt.Sprintf("n%04d", i))
	}
	quota("0" + strings.Repeat("x", stats.MaxNamespaceName))
	shown := 0
	for _, m := range sourceOf(s).Metrics() {
		if m.Name == "quota_count_limit_per_namespace" {
			shown++
			if len(m.Key) > stats.MaxNamespaceName {
				t.Errorf("a name of %d bytes", len(m.Key))
			}
		}
	}
	if shown != stats.MaxNamespaces {
		t.Errorf("%d quotas are shown", shown)
	}
}
