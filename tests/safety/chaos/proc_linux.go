package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// proc is a started process whose end another goroutine waits for.
type proc struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts a command that appends to the file at log. The command is killed
// when this process dies, however that happens. enter is called on the thread
// that starts the command, and reports whether that thread has to end.
func launch(log string, enter func() (bool, error), bin string, args ...string) (*proc, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	p := &proc{cmd: exec.Command(bin, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// For the kernel the parent is the thread: it may not end before the
		// child does.
		runtime.LockOSThread()
		end, err := enter()
		if !end {
			defer runtime.UnlockOSThread()
		}
		if err == nil {
			err = p.cmd.Start()
		}
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // exit reports it
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// stayHere starts a process in the namespace of this process.
func stayHere() (bool, error) { return false, nil }

// ended reports whether the process is gone.
func (p *proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to a process that may be gone.
func (p *proc) signal(s syscall.Signal) error {
	if p.ended() {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(s)
}

// kill ends the process like a power failure.
func (p *proc) kill() {
	_ = p.cmd.Process.Kill() // also one that was stopped
	<-p.done
}

// exit waits until the process has ended and returns how it ended.
func (p *proc) exit(within time.Duration) (*os.ProcessState, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState, nil
	case <-time.After(within):
		return nil, fmt.Errorf("process %d has not ended after %v", p.cmd.Process.Pid, within)
	}
}

// stopped reports whether the kernel holds the process stopped.
func (p *proc) stopped() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	return ok && strings.HasPrefix(rest, "T")
}
