// Command total adds up the runs in files that tests/safety/summary has written, or on standard
// input, and prints the sum as Markdown.
//
//	go run ./tests/safety/summary/total runs.jsonl
//	go run ./tests/safety/summary/total -every 10h runs.jsonl   and a row for each ten hours
//	go run ./tests/safety/summary/total -record simulation DIR/*/sim.jsonl
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/safety/summary"
)

func main() {
	every := flag.Duration("every", 0, "add a row for each `period` of the time that was run; 0: none")
	suite := flag.String("record", "", "write the record of this `suite` only; each file belongs to the commit that its directory names")
	flag.Parse()
	var err error
	if *suite == "" {
		err = run(flag.Args(), *every, os.Stdin, os.Stdout)
	} else {
		err = record(flag.Args(), *suite, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "total:", err)
		os.Exit(1)
	}
}

func run(names []string, every time.Duration, in io.Reader, out io.Writer) error {
	var runs []*summary.Run
	if len(names) == 0 {
		more, err := report.Read[summary.Run](in)
		if err != nil {
			return err
		}
		runs = more
	}
	for _, name := range names {
		more, err := report.ReadFile[summary.Run](name)
		if err != nil {
			return err
		}
		runs = append(runs, more...)
	}
	return summary.Write(out, runs, every)
}

// record writes what hours.sh has recorded.
func record(names []string, suite string, out io.Writer) error {
	var records []summary.Record
	for _, name := range names {
		runs, err := report.ReadFile[summary.Run](name)
		if err != nil {
			return err
		}
		records = append(records, summary.Record{Commit: filepath.Base(filepath.Dir(name)), Runs: runs})
	}
	return summary.WriteRecords(out, suite, records)
}
