package compare

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

// Options says how much to measure.
type Options struct {
	Runs     int           // of each cell, or point of a curve, and contender
	Duration time.Duration // of each load
	Warm     time.Duration // of mixed load before the first cell, 0: none
	Small    bool          // a tenth of the durations and session counts that cells set themselves: shows that they work, measures nothing
	Dir      string        // directory for the servers
	Cells    []Cell
	Curves   *regexp.Regexp // amounts to measure in MeasureGrowth; nil: all
	Most     int            // maximum amount in MeasureGrowth, 0: no limit
	Log      func(text string)
}

// Measure runs the matrix. It runs a contender's cells one after another on the same
// servers, with the contenders taking turns, and repeats the matrix several times.
func Measure(ctx context.Context, contenders []Contender, o Options) (*Report, error) {
	report := newReport(contenders, o)
	defer report.Finish()
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

// twice repeats a failed measurement once. If a server fails once, e.g. because etcd
// refuses requests for a few minutes, we should not lose half an hour of measurements.
func twice(ctx context.Context, c Contender, cell Cell, o Options, measure func() error) error {
	err := measure()
	if err != nil && ctx.Err() == nil {
		o.Log(fmt.Sprintf("%-10s %d× %s fails, and is measured once more: %v", c.Name, cell.Servers, cell.Name, err))
		err = measure()
	}
	return err
}

// loads returns the cells that can share a contender's n servers.
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
	e, stop, err := begin(c, o.Dir, cells[0].Servers)
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

// measureAlone measures a cell that needs its own servers.
func measureAlone(ctx context.Context, c Contender, cell Cell, o Options, report *Report, run int) error {
	e, stop, err := begin(c, o.Dir, cell.Servers)
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
