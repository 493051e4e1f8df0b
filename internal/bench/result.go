package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Result is the result of a run.
type Result struct {
	Work    string   `json:"work"`
	Servers []string `json:"servers"`
	Conns   int      `json:"conns"`
	Window  int      `json:"window"`
	Size    int      `json:"size"`
	Nodes   int      `json:"nodes"`

	Seconds      float64          `json:"seconds"` // of counting
	Ops          int64            `json:"ops"`
	OpsPerSecond float64          `json:"ops_per_second"`
	Latency      Latency          `json:"latency_us"`
	Errors       map[string]int64 `json:"errors,omitempty"` // by reason

	// CPUPerOp is the CPU time of Config.PIDs in microseconds per operation, and RSS
	// is their resident memory at the end, in bytes. Without PIDs they are nil and 0.
	CPUPerOp *float64 `json:"cpu_us_per_op,omitempty"`
	RSS      int64    `json:"rss_bytes,omitempty"`

	Figures []Figure `json:"figures,omitempty"` // numbers that only this work has
}

// Latency is the latency of operations, in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// Figure is a number with a name.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// ErrorCount returns the number of operations that failed.
func (r *Result) ErrorCount() (n int64) {
	for _, k := range r.Errors {
		n += k
	}
	return n
}

// head contains the column titles of WriteText.
var head = []string{"work", "conns", "ops/s", "p50", "p90", "p99", "p99.9", "max", "errors", "CPU/op", "RSS"}

const row = "%-22s %9s %11s %9s %9s %9s %9s %9s %7s %9s %9s"

// WriteTextHead writes the header line for [Result.WriteText].
func WriteTextHead(w io.Writer) error {
	args := make([]any, len(head))
	for i, h := range head {
		args[i] = h
	}
	return line(w, args)
}

func line(w io.Writer, args []any) error {
	_, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(row, args...), " "))
	return err
}

// WriteText writes a human-readable line, and one more for each error and figure.
func (r *Result) WriteText(w io.Writer) error {
	l := &r.Latency
	cpu, rss := "-", "-"
	if r.CPUPerOp != nil {
		cpu = micros(*r.CPUPerOp)
	}
	if r.RSS > 0 {
		rss = fmt.Sprintf("%.1f MiB", float64(r.RSS)/(1<<20))
	}
	err := line(w, []any{r.Work, fmt.Sprintf("%dx%d", r.Conns, r.Window), strconv.FormatFloat(r.OpsPerSecond, 'f', 0, 64),
		micros(l.P50), micros(l.P90), micros(l.P99), micros(l.P999), micros(l.Max), strconv.FormatInt(r.ErrorCount(), 10), cpu, rss})
	for _, f := range r.Figures {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %s: %s %s\n", f.Name, strconv.FormatFloat(f.Value, 'f', -1, 64), f.Unit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Errors)) {
		if err == nil {
			_, err = fmt.Fprintf(w, "  error %s: %d\n", name, r.Errors[name])
		}
	}
	return err
}

// micros formats microseconds with a suitable unit.
func micros(us float64) string {
	switch {
	case us < 1000:
		return strconv.FormatFloat(us, 'f', 1, 64) + "us"
	case us < 1e6:
		return strconv.FormatFloat(us/1e3, 'f', 2, 64) + "ms"
	}
	return strconv.FormatFloat(us/1e6, 'f', 2, 64) + "s"
}

// WriteCSV writes the results as a table with a header. The last column contains the figures that
// only some works have, as name=value.
func WriteCSV(w io.Writer, results []*Result) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"work", "servers", "conns", "window", "size", "nodes", "seconds", "ops", "ops_per_second",
		"mean_us", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us", "errors", "cpu_us_per_op", "rss_bytes", "figures"})
	float := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	for _, r := range results {
		cpu := ""
		if r.CPUPerOp != nil {
			cpu = float(*r.CPUPerOp)
		}
		var figures []string
		for _, f := range r.Figures {
			figures = append(figures, f.Name+"="+float(f.Value)+" "+f.Unit)
		}
		l := &r.Latency
		_ = out.Write([]string{r.Work, strings.Join(r.Servers, ","), strconv.Itoa(r.Conns), strconv.Itoa(r.Window), strconv.Itoa(r.Size), strconv.Itoa(r.Nodes),
			float(r.Seconds), strconv.FormatInt(r.Ops, 10), float(r.OpsPerSecond), float(l.Mean), float(l.P50), float(l.P90), float(l.P99), float(l.P999), float(l.Max),
			strconv.FormatInt(r.ErrorCount(), 10), cpu, strconv.FormatInt(r.RSS, 10), strings.Join(figures, ";")})
	}
	out.Flush()
	return out.Error()
}
