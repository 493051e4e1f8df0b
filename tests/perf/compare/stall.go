package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/bench"
)

// stalls measures how much snapshots of a large tree delay writes. It runs the same load
// without snapshots and with frequent ones.
func stalls(b *Bed) (Values, error) {
	if _, err := b.ask(); err != nil {
		return nil, err
	}
	never, err := b.writesWith("snapCount=2000000000")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	often, err := b.writesWith(fmt.Sprintf("snapCount=%d", int(b.lasts(often).Seconds()*never.OpsPerSecond)))
	if err != nil {
		return nil, err
	}
	taken, err := b.snapshots(began)
	if err == nil && taken == 0 {
		err = errors.New("no snapshot was taken under load")
	}
	return Values{
		Added:   (often.Latency.P999 - never.Latency.P999) / 1e3,
		P999:    often.Latency.P999,
		Longest: often.Latency.Max / 1e3,
	}, err
}

// often bounds the time between two snapshots: snapCount is the number of writes in it.
const often = 4 * time.Second

// writesWith restarts the server with another line in its configuration and runs a write
// load.
func (b *Bed) writesWith(line string) (*bench.Result, error) {
	s := b.Servers[0]
	s.Kill()
	file := filepath.Join(s.Dir, "zoo.cfg")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	before, _, _ := strings.Cut(string(text), "snapCount=")
	if err := os.WriteFile(file, []byte(before+line+"\n"), 0o600); err != nil {
		return nil, err
	}
	if _, err := b.restart(); err != nil {
		return nil, err
	}
	cfg := load("set", 64, 1)
	cfg.Servers, cfg.PIDs = b.Load.Servers, []int{s.PID()}
	cfg.Warmup, cfg.Duration = b.lasts(3*time.Second), b.lasts(3*often)
	r, err := b.put(cfg)
	if err == nil && r.ErrorCount() > 0 {
		err = fmt.Errorf("%s: %v", line, r.Errors)
	}
	return r, err
}

// snapshots counts the snapshot files that were modified since a time.
func (b *Bed) snapshots(since time.Time) (n int, err error) {
	err = filepath.WalkDir(b.Servers[0].Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "snapshot") {
			return nil //nolint:nilerr // the file was removed in the meantime
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(since) {
			n++
		}
		return nil
	})
	return n, err
}
