package compare

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

// Options says how much is measured.
type Options struct {
	Runs     int           // of each cell, or point of a curve, and contender
	Duration time.Duration // of each load
	Warm     time.Duration // of mixed load before the first, 0: none
	Small    bool          // a tenth of the times and sessions that cells have of their own: shows that they work, measures nothing
	Dir      string        // for the servers
	Cells    []Cell
	Curves   *regexp.Regexp // of MeasureGrowth, by what grows; nil: all
	Most     int            // of what grows in MeasureGrowth, 0: as far as it goes
	Log      func(text string)
}

// Measure runs the matrix: the cells of one contender after another on the same
// servers, contenders in turns, and all of it several times.
func Measure(ctx context.Context, contenders []Contender, o Options) (*Report, error) {
	report := newReport(contenders, o)
	for run := range o.Runs {
		for _, n := range []int{1, 3} {
			for _, c := range contenders {
				if err := measureLoads(ctx, c, o.loads(c, n), o, report, run); err != nil {
					return report, fmt.Errorf("%s, %d servers: %w", c.Name, n, err)
				}
			}
		}
		for _, cell := range o.Cells {
			for _, c := range contenders {
				if cell.Measure == nil || !c.can(&cell) {
					continue
				}
				err := twice(ctx, c, cell, o, func() error { return measureAlone(ctx, c, cell, o, report, run) })
				if err != nil {
					return report, fmt.Errorf("%s, %s: %w", c.Name, cell.Name, err)
				}
			}
		}
	}
	return report, ctx.Err()
}

// twice measures once more what fails: that a server does so once, as etcd that refuses
// requests in some minutes, is no reason to throw half an hour away.
func twice(ctx context.Context, c Contender, cell Cell, o Options, measure func() error) error {
	err := measure()
	if err != nil && ctx.Err() == nil {
		o.Log(fmt.Sprintf("%-10s %d× %s fails, and is measured once more: %v", c.Name, cell.Servers, cell.Name, err))
		err = measure()
	}
	return err
}

// loads are the cells that a contender's n servers can do one after another.
func (o *Options) loads(c Contender, n int) (cells []Cell) {
	for _, cell := range o.Cells {
		if cell.Servers == n && cell.Measure == nil && c.can(&cell) {
			cells = append(cells, cell)
		}
	}
	return cells
}

// measureLoads runs loads one after another on the same servers.
func measureLoads(ctx context.Context, c Contender, cells []Cell, o Options, report *Report, run int) error {
	if len(cells) == 0 {
		return nil
	}
	e, stop, err := servers(c, o.Dir, cells[0].Servers)
	if err != nil {
		return err
	}
	defer stop()
	if err := warm(ctx, c, e, o); err != nil {
		return err
	}
	for _, cell := range cells {
		b := c.bed(ctx, e, cell.Load, o)
		b.Load.Duration, b.Load.Seed = o.Duration, uint64(run)
		var v Values
		err := twice(ctx, c, cell, o, func() (err error) { v, err = b.ask(); return err })
		if err != nil {
			return fmt.Errorf("%s: %w", cell.Name, err)
		}
		o.Log(fmt.Sprintf("%-10s %d× %-45s %s", c.Name, cell.Servers, cell.Name, v))
		report.add(cell, c, v)
	}
	return nil
}

// measureAlone measures what wants servers of its own.
func measureAlone(ctx context.Context, c Contender, cell Cell, o Options, report *Report, run int) error {
	e, stop, err := servers(c, o.Dir, cell.Servers)
	if err != nil {
		return err
	}
	defer stop()
	b := c.bed(ctx, e, cell.Load, o)
	b.Load.Seed = uint64(run)
	v, err := cell.Measure(b)
	if err != nil {
		return err
	}
	o.Log(fmt.Sprintf("%-10s %d× %-45s %s", c.Name, cell.Servers, cell.Name, v))
	report.add(cell, c, v)
	return nil
}
