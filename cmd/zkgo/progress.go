package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
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
			bar = progressbar.NewOptions64(total,
				progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(true),
				progressbar.OptionShowElapsedTimeOnFinish(), progressbar.OptionThrottle(progressEvery), progressbar.OptionFullWidth())
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
