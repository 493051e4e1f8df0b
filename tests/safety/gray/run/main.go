//go:build linux

// Command run measures what clients of zkgo and of Apache ZooKeeper notice when a
// network misbehaves without going down, and writes the result as a page. It
// needs root.
//
//	go run ./tests/safety/gray/run                              everything, about half an hour
//	go run ./tests/safety/gray/run -short                       without the long scenarios
//	go run ./tests/safety/gray/run -only "forward stream"       some scenarios
//	go run ./tests/safety/gray/run -page docs/design/reliability-gray.md
//	go run ./tests/safety/gray/run -programs "" -page FILE      a page from the record
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/kit/servers"
	"github.com/zkgo/zkgo/tests/safety/gray"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gray:", err)
		os.Exit(1)
	}
}

func run() error {
	short := flag.Bool("short", false, "leave out what waits for long")
	only := flag.String("only", "", "carry out the scenarios whose `names` or tables contain one of these texts, separated by |")
	programs := flag.String("programs", "zkgo,ZooKeeper", "measure these `programs`")
	binary := flag.String("zkgo", "", "measure this zkgo `binary` instead of building one")
	parallel := flag.Int("parallel", 2, "how many ensembles at a time")
	slack := flag.Duration("slack", 0, "how much longer than a limit it may take on a busy machine")
	record := flag.String("record", "gray.jsonl", "append the results to this `file`, a line for each program")
	page := flag.String("page", "", "write everything in the record as a page to this `file`")
	keep := flag.Bool("keep", false, "keep the servers' directories")
	flag.Parse()
	plan := gray.Plan{Short: *short, Parallel: *parallel}
	if *only != "" {
		plan.Only = strings.Split(*only, "|")
	}
	if err := netns.Usable(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "zkgo-gray-")
	if err != nil {
		return err
	}
	if *keep {
		fmt.Println("servers in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	var wrong []string
	for _, name := range strings.Split(*programs, ",") {
		if name == "" {
			continue
		}
		faults, err := measure(name, *binary, dir, plan, *record, *slack)
		if err != nil {
			return err
		}
		wrong = append(wrong, faults...)
	}
	if *page != "" {
		reports, err := report.ReadFile[gray.Report](*record)
		if err != nil {
			return err
		}
		if err := os.WriteFile(*page, []byte(gray.Page(reports)), 0o644); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("not as it must be:\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// measure measures one program, and adds the report to the record.
func measure(name, binary, dir string, plan gray.Plan, record string, slack time.Duration) (wrong []string, err error) {
	p, err := servers.Named(name, "512m", binary, dir)
	if err != nil {
		return nil, err
	}
	r := gray.NewReport(p.Name, p.Version)
	r.Rows, err = gray.Measure(p, dir, plan, func(row gray.Row) { fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), row) })
	r.Finish()
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	for _, row := range r.Rows {
		wrong = append(wrong, row.Faults(slack)...)
	}
	return wrong, report.Append(record, r)
}
