// Command run measures locks side by side and writes the results as JSON and into
// docs/guide/locks.md.
//
//	go run ./tests/perf/lockbench/run                    everything, about five minutes
//	go run ./tests/perf/lockbench/run -small             everything, briefly
//	go run ./tests/perf/lockbench/run -services zkgo-1,zookeeper-1
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/tests/perf/lockbench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "lockbench:", err)
		os.Exit(1)
	}
}

func run() error {
	small := flag.Bool("small", false, "everything, briefly: shows that it works, measures nothing")
	services := flag.String("services", "", "measure these `services` only, separated by commas")
	require := flag.Bool("require", false, "fail if anything is left out")
	out := flag.String("results", "", "write the results as JSON into this `directory`")
	page := flag.String("page", "", "write the tables into this `file`, between its markers")
	flag.Parse()

	dir, err := os.MkdirTemp("", "zkgo-lockbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := lockbench.Options{Dir: dir, Small: *small, Log: os.Stdout}
	if *services != "" {
		o.Services = strings.Split(*services, ",")
	}
	report, err := lockbench.Measure(o)
	if err != nil {
		return err
	}
	fmt.Print("\n", report.Tables())
	if err := write(report, *out, *page); err != nil {
		return err
	}
	if *require && len(report.Skipped) > 0 {
		return fmt.Errorf("left out: %v", report.Skipped)
	}
	if faults := report.Faults(); len(faults) > 0 {
		return fmt.Errorf("not as it must be:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}

// write writes the report to the requested places.
func write(report *lockbench.Report, dir, page string) error {
	if dir != "" {
		b, err := json.MarshalIndent(report, "", " ")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		name := "locks-" + report.Date.Format("2006-01-02") + ".json"
		if err := os.WriteFile(filepath.Join(dir, name), append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if page != "" {
		return report.WriteInto(page)
	}
	return nil
}
