package mntr

import (
	"strconv"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/status"
)

// Lines collects the lines of mntr.
type Lines []status.Metric

// Add adds one line.
func (m *Lines) Add(kind status.MetricKind, name, value string) {
	*m = append(*m, status.Metric{Name: name, Value: value, Kind: kind})
}

// Keyed adds the metric of one of several named objects, unless n is negative.
func (m *Lines) Keyed(kind status.MetricKind, key, name string, n int64) {
	if n >= 0 {
		*m = append(*m, status.Metric{Name: name, Key: key, Value: strconv.FormatInt(n, 10), Kind: kind})
	}
}

// Text adds a value that isn't a number to calculate with.
func (m *Lines) Text(name, value string) { m.Add(status.Note, name, value) }

// Int adds a value that may increase and decrease.
func (m *Lines) Int(name string, n int64) { m.Add(status.Gauge, name, strconv.FormatInt(n, 10)) }

// Count adds a value that only increases until a reset.
func (m *Lines) Count(name string, n int64) { m.Add(status.Counter, name, strconv.FormatInt(n, 10)) }

// summary adds the lines of a distribution, in whole milliseconds except for the
// average. If there are several of one name, the key comes before the name.
func (m *Lines) summary(s *status.Summary) {
	name := s.Name
	if s.Key != "" {
		name = status.Plain(s.Key) + "_" + name
	}
	m.Text("avg_"+name, fourletter.Float(s.Mean))
	for _, line := range []struct {
		name  string
		value float64
	}{
		{"min", s.Min}, {"max", s.Max}, {"cnt", float64(s.Count)}, {"sum", s.Sum},
		{"p50", s.P50}, {"p95", s.P95}, {"p99", s.P99}, {"p999", s.P999},
	} {
		if s.Basic && line.name[0] == 'p' {
			continue
		}
		m.Text(line.name+"_"+name, strconv.FormatInt(int64(line.value), 10))
	}
}
