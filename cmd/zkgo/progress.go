package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/zkgo/zkgo/internal/takeover"
)

// progressEvery is the interval between updates of a progress bar.
const progressEvery = 100 * time.Millisecond

// byteProgress shows a progress bar on a terminal; on other outputs it shows nothing.
// done ends it.
func byteProgress(w io.Writer, what string) (show func(done, total int64), done func()) {
	if !isTerminalOut(w) {
		return nil, func() {}
	}
	var bar *progressbar.ProgressBar
	show = func(done, total int64) {
		if bar == nil {
			bar = newBar(w, what, total, progressbar.OptionShowBytes(true))
		}
		if bar.GetMax64() != total {
			bar.ChangeMax64(total)
		}
		_ = bar.Set64(done) // errors of a closed terminal don't matter
	}
	return show, func() {
		if bar != nil {
			_ = bar.Finish()
			_, _ = io.WriteString(w, "\n")
		}
	}
}

// newBar returns a progress bar; total is −1 if it isn't known.
func newBar(w io.Writer, what string, total int64, how ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what), progressbar.OptionShowElapsedTimeOnFinish(),
		progressbar.OptionThrottle(progressEvery), progressbar.OptionFullWidth(), progressbar.OptionSetSpinnerChangeInterval(0),
	}, how...)...)
}

// arrivalProgress returns a function that shows a progress bar for the snapshot of a mirror. A
// call with nil ends the bar. On other outputs than a terminal it returns nil.
func arrivalProgress(w io.Writer) func(*takeover.Arrival) {
	if !isTerminalOut(w) {
		return nil
	}
	return arrivalBar(w, progressEvery)
}

// arrivalBar is arrivalProgress for a terminal, which it updates after each interval.
func arrivalBar(w io.Writer, every time.Duration) func(*takeover.Arrival) {
	var bar *progressbar.ProgressBar
	estimated := false // bar has a total
	return func(a *takeover.Arrival) {
		if a == nil {
			if bar != nil {
				_, _ = io.WriteString(w, "\n") // errors of a closed terminal don't matter
			}
			bar = nil
			return
		}
		done, total, what := int64(a.Znodes), int64(-1), "receiving snapshot (size unknown)"
		switch {
		case a.Complete:
			total, what = max(done, 1), "writing snapshot to the log"
		case a.Expected > 0: // an estimate may be too low, and only a.Complete is the end
			total, what = max(int64(a.Expected), done+1), "receiving snapshot (size estimated)"
		}
		if known := total >= 0; bar == nil || known != estimated {
			estimated = known
			bar = newBar(w, what, total, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("znodes"), progressbar.OptionThrottle(every))
		}
		bar.Describe(what)
		if estimated && bar.GetMax64() != total {
			bar.ChangeMax64(total)
		}
		_ = bar.Set64(done)
		if a.Complete { // the log continues below
			_, _ = io.WriteString(w, "\n")
			bar = nil
		}
	}
}

// isTerminalOut reports whether w is a terminal.
func isTerminalOut(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// count formats a number with its noun.
func count[N int | int32 | int64 | uint32 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
