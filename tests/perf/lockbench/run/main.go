// Command run measures locks side by side and writes the results as JSON and into
// docs/guide/locks.md.
//
//	go run ./tests/perf/lockbench/run                    everything, about five minutes
//	go run ./tests/perf/lockbench/run -small             everything, briefly
//	go run ./tests/perf/lockbench/run -services zkgo-1,zookeeper-1
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/zkgo/zkgo/tests/kit/report"
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
	r, err := lockbench.Measure(o)
	if err != nil {
		return err
	}
	fmt.Print("\n", r.Tables())
	if err := write(r, *out, *page); err != nil {
		return err
	}
	if *require && len(r.Skipped) > 0 {
		return fmt.Errorf("left out: %v", r.Skipped)
	}
	if faults := r.Faults(); len(faults) > 0 {
		return fmt.Errorf("not as it must be:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}

// write writes the report to the requested places.
func write(r *lockbench.Report, dir, page string) error {
	if err := report.WriteJSON(dir, "locks", r.Date, r); err != nil {
		return err
	}
	if page != "" {
		return r.WriteInto(page)
	}
	return nil
}
