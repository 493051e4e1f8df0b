//go:build linux

// Command run measures what clients of zkgo and of Apache ZooKeeper notice of
// gray networks, and writes the result as a page. It needs root.
//
//	go run ./tests/gray/run                              everything, about half an hour
//	go run ./tests/gray/run -short                       what does not wait for long
//	go run ./tests/gray/run -only "forward stream"       some scenarios
//	go run ./tests/gray/run -page docs/reliability-gray.md
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/failover"
	"github.com/zkgo/zkgo/tests/gray"
	"github.com/zkgo/zkgo/tests/netns"
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
	page := flag.String("page", "", "write the results to this `file`")
	keep := flag.Bool("keep", false, "keep the servers' directories")
	flag.Parse()
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
	report := gray.NewReport()
	var wrong []string
	for _, name := range strings.Split(*programs, ",") {
		p, err := program(name, *binary, dir)
		if err != nil {
			return err
		}
		report.Versions = append(report.Versions, p.Version)
		plan := gray.Plan{Short: *short, Parallel: *parallel}
		if *only != "" {
			plan.Only = strings.Split(*only, "|")
		}
		rows, err := gray.Measure(p, dir, plan, func(r gray.Row) { fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), r) })
		report.Rows = append(report.Rows, rows...)
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		for _, r := range rows {
			wrong = append(wrong, r.Faults(*slack)...)
		}
	}
	report.Finish()
	if *page != "" {
		if err := os.WriteFile(*page, []byte(report.Page()), 0o644); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("not as it must be:\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// program returns what to measure.
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
