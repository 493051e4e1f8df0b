// Command run measures what clients notice when servers of zkgo and of Apache ZooKeeper
// fail, and writes the results as JSON and as a page.
//
//	go run ./tests/safety/failover/run                 everything, about seventeen minutes
//	go run ./tests/safety/failover/run -small          every scenario, a few times each
//	go run ./tests/safety/failover/run -only kill,stop some scenarios
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/kit/servers"
	"github.com/zkgo/zkgo/tests/safety/failover"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run() error {
	small := flag.Bool("small", false, "every scenario, a few times each: shows that it works, measures nothing")
	only := flag.String("only", "", "run these `scenarios`, separated by commas")
	programs := flag.String("programs", "zkgo,ZooKeeper", "measure these `programs`")
	binary := flag.String("zkgo", "", "measure this zkgo `binary` instead of building one")
	out := flag.String("results", "", "write the results as JSON into this `directory`")
	page := flag.String("page", "", "write the results as a table to this `file`")
	keep := flag.Bool("keep", false, "keep the servers' directories")
	flag.Parse()

	dir, err := os.MkdirTemp("", "zkgo-failover-")
	if err != nil {
		return err
	}
	if *keep {
		fmt.Println("servers in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	r := failover.NewReport()
	failed := false
	for _, name := range strings.Split(*programs, ",") {
		p, err := servers.Named(name, "1000m", *binary, dir)
		if err != nil {
			return err
		}
		r.Versions[p.Name] = p.Version
		results, err := failover.Measure(p, filepath.Join(dir, p.Name), chosen(failover.Plan(p.Name, *small), *only), func(res failover.Result) {
			fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), res)
		})
		r.Results = append(r.Results, results...)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	r.Finish()
	if err := write(r, *out, *page); err != nil {
		return err
	}
	fmt.Print("\n", r.Table())
	if faults := r.Faults(!*small); failed || len(faults) > 0 {
		return fmt.Errorf("not as it must be:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}

// chosen filters out the scenarios that the user didn't ask for.
func chosen(all []failover.Scenario, only string) []failover.Scenario {
	if only == "" {
		return all
	}
	names := strings.Split(only, ",")
	return slices.DeleteFunc(all, func(s failover.Scenario) bool { return !slices.Contains(names, s.Name) })
}

// write writes the report to the requested places.
func write(r *failover.Report, dir, page string) error {
	if err := report.WriteJSON(dir, "failover", r.Date, r); err != nil {
		return err
	}
	if page != "" {
		return os.WriteFile(page, []byte(r.Page()), 0o644)
	}
	return nil
}
