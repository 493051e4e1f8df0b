package peers

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds a whole test, which should be much faster.
const patience = 5 * time.Minute

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// worker is a program in another language.
type worker struct {
	t      *testing.T
	ctx    context.Context
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // its output; closed after it has ended
	errors bytes.Buffer
	once   sync.Once
}

// start starts a worker, which ends with the test at the latest.
func start(ctx context.Context, t *testing.T, command ...string) *worker {
	t.Helper()
	w := &worker{t: t, ctx: ctx, cmd: exec.Command(command[0], command[1:]...), lines: make(chan string, 100)}
	w.cmd.Stderr = &w.errors
	w.in = must.Get(w.cmd.StdinPipe())(t)
	out := must.Get(w.cmd.StdoutPipe())(t)
	must.Do(t, w.cmd.Start())
	go func() {
		defer close(w.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			w.lines <- s.Text()
		}
	}()
	t.Cleanup(w.kill)
	return w
}

// kill kills the worker as kill -9 does.
func (w *worker) kill() {
	w.once.Do(func() {
		_ = w.cmd.Process.Kill()
		for range w.lines { //nolint:revive // until it has ended
		}
		_ = w.cmd.Wait() // killed
		if w.t.Failed() {
			w.t.Logf("%s said:\n%s", w.cmd.Path, w.errors.Bytes())
		}
	})
}

// say sends a line.
func (w *worker) say(words ...string) {
	_, _ = io.WriteString(w.in, strings.Join(words, " ")+"\n") // if this fails, the test notices the missing answer
}

// hear returns the next line, or false if the worker has ended.
func (w *worker) hear() (string, bool) {
	select {
	case line, ok := <-w.lines:
		return line, ok
	case <-w.ctx.Done():
		return context.Cause(w.ctx).Error(), false
	}
}

// ask sends a line and returns the answer.
func (w *worker) ask(words ...string) string {
	w.t.Helper()
	w.say(words...)
	line, ok := w.hear()
	if !ok || strings.HasPrefix(line, "error") {
		w.t.Fatalf("%q is answered by %q", words, line)
	}
	return line
}

// expect fails the test if the answer differs from want.
func (w *worker) expect(want string, words ...string) {
	w.t.Helper()
	if got := w.ask(words...); got != want {
		w.t.Errorf("%q is answered by %q, not %q", words, got, want)
	}
}
