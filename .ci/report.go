// Command report reads the output of "go test -json" on standard input, prints a line per
// package and the output of every failed test, and adds the test counts to a file.
//
//	go test -json ./... | go run .ci/report.go -tally FILE [-no-skips] [-failures FILE]
//
// It exits with status 1 if a test or package failed, if no test ran, or, with -no-skips,
// if a test was skipped.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
)

// event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

func main() {
	tally := flag.String("tally", "", "file to add a line with the numbers of passed, failed and skipped tests to")
	noSkips := flag.Bool("no-skips", false, "fail when a test was skipped")
	failures := flag.String("failures", "", "file to write the packages that failed to, one a line")
	flag.Parse()
	var r report
	r.output = map[string][]string{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Println(in.Text()) // printed by the go command, not by a test
			continue
		}
		r.add(e)
	}
	if *failures != "" {
		if err := os.WriteFile(*failures, []byte(strings.Join(r.bad, "\n")), 0o644); err != nil {
			fmt.Println("the failures could not be kept:", err)
			os.Exit(1)
		}
	}
	if !r.end(*tally, *noSkips) {
		os.Exit(1)
	}
}

// report is the state of a run so far.
type report struct {
	output                  map[string][]string // by package and test, until the test has ended
	passed, failed, skipped int
	skips                   []string
	bad                     []string // packages that failed
}

func (r *report) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		fmt.Print(e.Output)
	case "build-fail":
		r.failed++
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e, key)
		} else {
			r.endTest(e, key)
		}
		delete(r.output, key)
	}
}

func (r *report) endTest(e event, key string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		r.skips = append(r.skips, key+": "+reason(r.output[key]))
	case "fail":
		r.failed++
		fmt.Printf("--- FAIL %s (%.1f s)\n%s", key, e.Elapsed, strings.Join(r.output[key], ""))
	}
}

func (r *report) endPackage(e event, key string) {
	switch e.Action {
	case "fail":
		// No test explains this failure: a panic, a timeout, or TestMain.
		r.failed++
		r.bad = append(r.bad, e.Package)
		fmt.Printf("FAIL  %s (%.1f s)\n%s", e.Package, e.Elapsed, strings.Join(r.output[key], ""))
		for other, lines := range r.output {
			if strings.HasPrefix(other, e.Package+" ") && other != key {
				fmt.Printf("--- did not end: %s\n%s", other, strings.Join(lines, ""))
			}
		}
	case "pass":
		fmt.Printf("ok    %s (%.1f s)\n", e.Package, e.Elapsed)
	}
}

// reason returns the line of a test's output that says why it was skipped.
func reason(lines []string) string {
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return ""
}

// end prints the totals and reports whether the run is good.
func (r *report) end(tally string, noSkips bool) bool {
	sort.Strings(r.skips)
	for _, skip := range r.skips {
		fmt.Println("skipped:", skip)
	}
	fmt.Printf("%d passed, %d failed, %d skipped in this step\n", r.passed, r.failed, r.skipped)
	good := r.failed == 0
	if r.passed+r.failed == 0 {
		fmt.Println("no test ran")
		good = false
	}
	if noSkips && r.skipped > 0 {
		fmt.Println("this step may skip nothing")
		good = false
	}
	if tally != "" {
		file, err := os.OpenFile(tally, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = fmt.Fprintln(file, r.passed, r.failed, r.skipped)
		}
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			fmt.Println("the counts could not be kept:", err)
			good = false
		}
	}
	return good
}
