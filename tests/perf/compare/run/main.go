// Command run measures zkgo beside Apache ZooKeeper and etcd, and writes the results as
// JSON, tables and plots.
//
//	go run ./tests/perf/compare/run                        everything, about an hour
//	go run ./tests/perf/compare/run -runs 1 -duration 1s   a first look
//	go run ./tests/perf/compare/run -pinned                servers on one CPU, clients on another
//	go run ./tests/perf/compare/run -only 'set|create'     some lines of the matrix
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/perf/compare"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1) //nolint:gocritic // there is nothing left for stop to undo
	}
}

func run(ctx context.Context) error {
	runs := flag.Int("runs", 3, "how often everything is measured")
	duration := flag.Duration("duration", 3*time.Second, "how long each load is measured")
	warm := flag.Duration("warm", 5*time.Second, "how long servers are warmed up")
	only := flag.String("only", "", "measure lines, and curves by what grows, that this `expression` matches")
	programs := flag.String("programs", "zkgo,zkgo bolt,ZooKeeper,etcd", "measure these `programs`")
	part := flag.String("part", "all", "measure the `matrix`, growth or all")
	binary := flag.String("zkgo", "", "measure this zkgo `binary` instead of building one")
	pinned := flag.Bool("pinned", false, "run the servers on CPU 0 and the clients on CPU 1, both on all otherwise")
	results := flag.String("results", "", "write the results as JSON into this `directory`")
	page := flag.String("page", "", "write the tables between the markers of this `file`")
	plots := flag.String("plots", "", "write pictures of the results into this `directory`")
	flag.Parse()

	dir, err := os.MkdirTemp("", "zkgo-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *binary == "" {
		*binary = filepath.Join(dir, "zkgo")
		if err := process.Build(*binary); err != nil {
			return err
		}
	}
	matching, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	say := func(text string) { fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), text) }
	var on compare.CPUs
	if *pinned {
		on = compare.CPUs{Servers: "0", Clients: "1"}
	}
	contenders, err := compare.Contenders(*binary, dir, on, say)
	if err != nil {
		return err
	}
	names := strings.Split(*programs, ",")
	contenders = slices.DeleteFunc(contenders, func(c compare.Contender) bool { return !slices.Contains(names, c.Name) })
	cells := slices.DeleteFunc(compare.Plan(*pinned), func(c compare.Cell) bool { return !matching.MatchString(c.Name) })
	o := compare.Options{Runs: *runs, Duration: *duration, Warm: *warm, Dir: dir, Cells: cells, Curves: matching, Log: say}
	name := "compare"
	if *pinned {
		name = "compare-pinned"
	}
	to := places{*results, *plots, *page}
	if *part != "growth" {
		r, err := compare.Measure(ctx, contenders, o)
		if r != nil {
			fmt.Print("\n", r.Table())
		}
		if err == nil {
			err = to.write(name, r.Date, r)
		}
		if err != nil {
			return err
		}
	}
	if *part != "matrix" {
		contenders = slices.DeleteFunc(contenders, func(c compare.Contender) bool { return !c.Grows() })
		r, err := compare.MeasureGrowth(ctx, contenders, o)
		if err != nil {
			return err
		}
		return to.write("growth", r.Date, r)
	}
	return nil
}

// places are the destinations of the results; an empty one is skipped.
type places struct{ results, plots, page string }

// measured is a report of either kind.
type measured interface {
	Plots() []compare.Plot
	// Section returns the report for a page, with the plots in a directory unless that is "".
	Section(plots string) string
}

// write writes the report to every place that is set.
func (p *places) write(name string, date time.Time, r measured) error {
	errs := []error{report.WriteJSON(p.results, name, date, r)}
	if p.plots != "" {
		errs = append(errs, writePlots(r, p.plots))
	}
	if p.page != "" {
		errs = append(errs, writePage(r, name, p.page, p.plots))
	}
	return errors.Join(errs...)
}

func writePlots(r measured, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range r.Plots() {
		if err := os.WriteFile(filepath.Join(dir, p.File), []byte(p.SVG), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writePage writes the report between the markers of a page, which shows the plots in
// directory plots if they were written.
func writePage(r measured, name, page, plots string) error {
	if plots != "" {
		var err error
		if plots, err = filepath.Rel(filepath.Dir(page), plots); err != nil {
			return err
		}
	}
	return report.Replace(page, name, r.Section(filepath.ToSlash(plots)))
}
