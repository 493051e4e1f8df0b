package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/zkgo/zkgo/tests/kit/wait"
)

// Proc is a started process. On Linux the kernel kills it when the test binary dies,
// however that happens.
type Proc struct {
	cmd  *exec.Cmd
	log  string // the file with its output, or ""
	out  *lockedBuffer
	done chan struct{} // closed after the process was reaped
	err  error         // of Wait, valid after done is closed
}

// Launch starts a command. Its output is appended to the file at log; if log is "", it
// stays in memory.
func Launch(cmd *exec.Cmd, log string) (*Proc, error) {
	return LaunchIn(nil, cmd, log)
}

// LaunchIn is Launch on a thread on which enter was called, for example to enter a
// network namespace. enter reports whether the thread can't be used for anything else. It may
// be nil.
func LaunchIn(enter func() (end bool, err error), cmd *exec.Cmd, log string) (*Proc, error) {
	p := &Proc{cmd: cmd, log: log, out: &lockedBuffer{}, done: make(chan struct{})}
	cmd.SysProcAttr = sysProcAttr(cmd.SysProcAttr)
	var out io.Writer = p.out
	if log != "" {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close() // the child has its own
		out = f
	}
	cmd.Stdout, cmd.Stderr = out, out
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends, so we keep that
		// thread.
		runtime.LockOSThread()
		end, err := false, error(nil)
		if enter != nil {
			end, err = enter()
		}
		if !end {
			defer runtime.UnlockOSThread()
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Running reports whether the process runs, frozen or not. A nil Proc doesn't.
func (p *Proc) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// PID returns the id of the process.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal. If the process has ended, it returns os.ErrProcessDone.
func (p *Proc) Signal(s os.Signal) error {
	if !p.Running() {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(s)
}

// Kill ends the process like kill -9, frozen or not, and waits until it is gone. It does
// nothing to a nil Proc.
func (p *Proc) Kill() {
	if p != nil {
		_ = p.cmd.Process.Kill() // it may be gone already
		<-p.done
	}
}

// Exit waits until the process has ended, and returns how it ended.
func (p *Proc) Exit(within time.Duration) (*os.ProcessState, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState, nil
	case <-time.After(within):
		return nil, fmt.Errorf("process %d has not ended after %v", p.PID(), within)
	}
}

// Stop asks the process to end, and returns an error unless it ends cleanly. If it doesn't
// end, Stop kills it.
func (p *Proc) Stop(ask os.Signal) error {
	if err := p.Signal(ask); err != nil {
		return err
	}
	if _, err := p.Exit(wait.Patience); err != nil {
		p.Kill()
		return fmt.Errorf("asked to stop: %w\n%s", err, p.Tail())
	}
	return p.err
}

// Freeze stops the process like SIGSTOP, and returns when it has stopped.
func (p *Proc) Freeze() error {
	if err := freeze(p); err != nil {
		return err
	}
	return wait.For(wait.Patience, fmt.Sprintf("process %d stands still", p.PID()), func() (bool, error) {
		if !p.Running() {
			return false, errors.New("it has ended")
		}
		return p.Frozen(), nil
	})
}

// Thaw lets a frozen process continue.
func (p *Proc) Thaw() error { return thaw(p) }

// Await waits until the process is ready, and returns early if it ends.
func (p *Proc) Await(within time.Duration, what string, ready func() error) error {
	var last error
	err := wait.For(within, what, func() (bool, error) {
		if last = ready(); last != nil && !p.Running() {
			return false, errors.New("the process has ended")
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %v\n%s", err, last, p.Tail())
	}
	return nil
}

// Output returns the process's output so far.
func (p *Proc) Output() string {
	if p.log == "" {
		return p.out.String()
	}
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Tail returns the end of the process's output.
func (p *Proc) Tail() string {
	out := p.Output()
	return out[max(0, len(out)-4000):]
}

// lockedBuffer collects a process's output while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
