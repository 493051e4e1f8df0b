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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
	"github.com/zkgo/zkgo/tests/safety/failover"
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
		reports, err := read(*record)
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
	p, err := program(name, binary, dir)
	if err != nil {
		return nil, err
	}
	report := gray.NewReport(p.Name, p.Version)
	report.Rows, err = gray.Measure(p, dir, plan, func(r gray.Row) { fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), r) })
	report.Finish()
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	for _, r := range report.Rows {
		wrong = append(wrong, r.Faults(slack)...)
	}
	line, err := json.Marshal(report)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return wrong, err
}

// read reads the reports in a record.
func read(record string) ([]*gray.Report, error) {
	f, err := os.Open(record)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var reports []*gray.Report
	for d := json.NewDecoder(f); ; {
		r := new(gray.Report)
		if err := d.Decode(r); errors.Is(err, io.EOF) {
			return reports, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", record, err)
		}
		reports = append(reports, r)
	}
}

// program returns the program to measure.
func program(name, binary, dir string) (failover.Program, error) {
	switch {
	case name == "ZooKeeper":
		return failover.ZooKeeper("512m")
	case name != "zkgo":
		return failover.Program{}, fmt.Errorf("no program %q: zkgo or ZooKeeper", name)
	case binary == "":
		binary = filepath.Join(dir, "zkgo-binary")
		out, err := exec.Command("go", "build", "-o", binary, "github.com/zkgo/zkgo/cmd/zkgo").CombinedOutput()
		if err != nil {
			return failover.Program{}, fmt.Errorf("building zkgo: %w: %s", err, out)
		}
	}
	return failover.Zkgo(binary), nil
}
