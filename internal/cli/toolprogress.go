package cli

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// progress is a bar on a terminal, and nothing anywhere else. nil does nothing.
type progress struct{ bar *progressbar.ProgressBar }

// progress begins a bar on the error stream if that is a terminal: what goes to Out
// may be data. total is −1 if it is not known.
func (c *Call) progress(what string, total int) *progress {
	if c.Has("q") || c.Has("v") || c.Has("dry-run") || !isTerminal(c.Err) {
		return nil
	}
	return &progress{progressbar.NewOptions(total,
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWriter(c.Err),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("znodes"),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(total > 0),
	)}
}

func (p *progress) step(n int) {
	if p != nil {
		p.bar.Add(n) //nolint:errcheck // progress only
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p != nil {
		p.bar.Clear() //nolint:errcheck // progress only
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := under(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a file's number is small
}

// total is the number of znodes of a place, for the bar; −1 if the server cannot
// tell, as before ZooKeeper 3.6.
func total(ctx context.Context, p subtree.Place) int {
	n, err := p.Client.ChildrenCount(ctx, p.Root)
	if err != nil {
		return -1
	}
	return n + 1
}
