// Package report writes the results of a run: a frame with the time, the machine and the
// commit, results as JSON, records with a line for each run, and the part of a page that a
// run replaces.
//
// It imports only the standard library.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Frame describes when, where and with which commit a run was made.
type Frame struct {
	Date       time.Time
	Took       float64 // seconds
	Machine    string
	CPUs       int
	Go         string
	Commit     string
	LoadBefore string
	LoadAfter  string
}

// Begin returns the frame of a run that begins.
func Begin() Frame {
	commit := "unknown"
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	return Frame{Date: time.Now().UTC().Truncate(time.Second), Machine: machine(), CPUs: runtime.NumCPU(), Go: runtime.Version(), Commit: commit, LoadBefore: load()}
}

// Finish notes the end of the run.
func (f *Frame) Finish() { f.Took, f.LoadAfter = time.Since(f.Date).Seconds(), load() }

// String describes the run in one line.
func (f *Frame) String() string {
	return fmt.Sprintf("%s UTC, %s, %d CPUs, %s; load average before %s, after %s; %.1f minutes; commit %s",
		f.Date.Format("2006-01-02 15:04"), f.Machine, f.CPUs, f.Go, f.LoadBefore, f.LoadAfter, f.Took/60, f.Commit)
}

// machine describes the processor and the kernel, as far as the system tells.
func machine() string {
	cpus, _ := os.ReadFile("/proc/cpuinfo") //nolint:errcheck // only Linux has it
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS + "/" + runtime.GOARCH
	}
	model := runtime.GOARCH
	for line := range strings.Lines(string(cpus)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s, Linux %s", model, strings.TrimSpace(string(kernel)))
}

// load returns the machine's load average of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}

// WriteJSON writes results into a directory, as NAME-DATE.json. It does nothing if the
// directory is "".
func WriteJSON(dir, name string, date time.Time, results any) error {
	if dir == "" {
		return nil
	}
	b, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+"-"+date.Format(time.DateOnly)+".json"), append(b, '\n'), 0o644)
}

// Append appends one run to a record, and creates the record if it is missing. Several
// processes may append to one record at the same time.
func Append(record string, run any) error {
	line, err := json.Marshal(run)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // we use one write, because other processes append too
	return errors.Join(err, f.Close())
}

// Read reads the runs in a record.
func Read[Run any](record io.Reader) ([]*Run, error) {
	var runs []*Run
	lines := bufio.NewScanner(record)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		r := new(Run)
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		runs = append(runs, r)
	}
	return runs, lines.Err()
}

// ReadFile reads the runs in a file.
func ReadFile[Run any](name string) ([]*Run, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runs, err := Read[Run](f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return runs, nil
}

// Replace replaces the text of a page between the markers
//
//	<!-- NAME: begin --> … <!-- NAME: end -->
func Replace(page, name, with string) error {
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: there is no %s … %s", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(page, []byte(before+begin+with+end+after), 0o644)
}
