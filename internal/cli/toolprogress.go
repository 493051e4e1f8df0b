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

// progress is a progress bar on a terminal. A nil progress does nothing.
type progress struct{ bar *progressbar.ProgressBar }

// progress starts a bar on the error stream if that is a terminal, because Out may
// receive data. total is −1 if it's unknown.
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

// end removes the bar.
func (p *progress) end() {
	if p != nil {
		p.bar.Clear() //nolint:errcheck // progress only
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := under(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a file's number is small
}

// total returns the number of znodes at a place, for the bar, or −1 if the server
// doesn't support the request (before ZooKeeper 3.6).
func total(ctx context.Context, p subtree.Place) int {
	n, err := p.Client.ChildrenCount(ctx, p.Root)
	if err != nil {
		return -1
	}
	return n + 1
}
