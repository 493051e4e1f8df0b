package metrics

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// Path is the path of the metrics.
const Path = status.MetricsPath

// Handler serves the metrics of src to Prometheus. With process, it adds the metrics of the
// Go runtime and the process.
func Handler(src status.MetricsSource, process bool) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(Collector(src))
	if process {
		r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!DOCTYPE html><title>zkgo</title><h1>zkgo</h1><p><a href="`+Path+`">`+Path+`</a>: metrics for Prometheus`+"\n")
	})
	mux.Handle(Path, promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	return mux
}

// Collector returns the metrics of src for a registry of the caller.
func Collector(src status.MetricsSource) prometheus.Collector { return collector{src} }

// collector reads the metrics from the source for every scrape.
type collector struct{ src status.MetricsSource }

// Describe sends no descriptions, because the set of metrics changes: e.g. a leader has
// more.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.src.Metrics() {
		typ := prometheus.GaugeValue
		switch m.Kind {
		case status.Gauge:
		case status.Counter:
			typ = prometheus.CounterValue
		default:
			continue
		}
		if v, err := strconv.ParseFloat(m.Value, 64); err == nil {
			labels, values := keyed(m.Key)
			out <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, Help(m.Name), labels, nil), typ, v, values...)
		}
	}
	for _, s := range c.src.Summaries() {
		q := map[float64]float64{0.5: s.P50, 0.9: s.P90, 0.99: s.P99}
		labels, values := keyed(s.Key)
		desc := prometheus.NewDesc(s.Name, Help(s.Name), labels, nil)
		out <- prometheus.MustNewConstSummary(desc, uint64(s.Count), s.Sum, q, values...)
	}
}

// keyed returns the labels of a metric that has a key. The key may be the name of a znode,
// which may not be a valid label value.
func keyed(key string) (labels, values []string) {
	if key == "" {
		return nil, nil
	}
	return []string{"key"}, []string{strings.ToValidUTF8(key, "?")} // ZooKeeper's name for the label
}
