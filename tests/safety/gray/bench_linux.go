package gray

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/tests/kit/servers"
)

// Plan selects the scenarios to run.
type Plan struct {
	// Short leaves out the slow scenarios, and most trials of the scenarios with many trials.
	Short bool
	// Only filters the scenarios: a scenario runs if its table or its name
	// contains one of the texts. Empty: all scenarios.
	Only []string
	// Parallel is the maximum number of ensembles that run at the same time; 0:
	// 1.
	Parallel int
	// GivenUp is how long a scenario waits for service to return; 0: 40 s.
	GivenUp time.Duration
}

// bench runs scenarios with a single program.
type bench struct {
	program servers.Program
	dir     string
	plan    Plan
	givenUp time.Duration
	note    func(Row)

	mu    sync.Mutex
	rows  []Row
	count int
}

// Measure runs scenarios with a program, in a directory below dir, and returns
// their rows. note is called immediately with each row, by one goroutine at a
// time. The error names what could not be measured.
func Measure(p servers.Program, dir string, plan Plan, note func(Row)) ([]Row, error) {
	b := &bench{program: p, dir: dir, plan: plan, note: note, givenUp: plan.GivenUp}
	if b.givenUp == 0 {
		b.givenUp = 40 * time.Second
	}
	err := b.run(b.parts())
	return b.rows, err
}

// parts returns the scenarios, in groups that may run at the same time.
func (b *bench) parts() []func() error {
	away, cut, timeouts := awayFor(), cutFor(), seconds(6, 7)
	if b.plan.Short {
		away, cut, timeouts = seconds(2, 22), seconds(25), seconds(6)
	}
	parts := []func() error{func() error { return b.dead(b.plan.Short) }, b.large, b.stale}
	for _, d := range away {
		parts = append(parts, func() error { return b.away([]time.Duration{d}) })
	}
	for _, d := range cut {
		parts = append(parts, func() error { return b.silence([]time.Duration{d}) })
	}
	return append(parts, func() error { return b.minority(timeouts) }, b.refusals)
}

func seconds(all ...int) (d []time.Duration) {
	for _, s := range all {
		d = append(d, time.Duration(s)*time.Second)
	}
	return d
}

// run runs parts, a limited number at a time.
func (b *bench) run(parts []func() error) error {
	room := make(chan struct{}, max(b.plan.Parallel, 1))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			errs[i] = part()
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// chosen reports whether a scenario is selected.
func (b *bench) chosen(table, name string) bool {
	return len(b.plan.Only) == 0 || slices.ContainsFunc(b.plan.Only, func(text string) bool {
		return strings.Contains(table, text) || strings.Contains(name, text)
	})
}

// start starts an ensemble in its own directory.
func (b *bench) start(set Settings) (*ensemble, error) {
	b.mu.Lock()
	b.count++
	dir := filepath.Join(b.dir, fmt.Sprintf("%s-%d", b.program.Name, b.count))
	b.mu.Unlock()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return start(b.program, dir, set)
}

// report records a row.
func (b *bench) report(r Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, r)
	if b.note != nil {
		b.note(r)
	}
}
