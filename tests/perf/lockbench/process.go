package lockbench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// patience bounds every wait for something that should take seconds at most.
const patience = 90 * time.Second

// proc is one server, running or not.
type proc struct {
	name string
	addr string // for clients
	dir  string // of its files; "out" is what it prints

	cmd  *exec.Cmd
	done chan struct{} // closed after the process was reaped
}

// start starts a program in the directory.
func (p *proc) start(args ...string) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(p.dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = out, out, p.dir, sysProcAttr()
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel kills the child when the thread that started it ends: keep that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its output says how it ended
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.cmd, p.done = cmd, done
	return nil
}

// await calls ready repeatedly until it returns nil.
func (p *proc) await(ready func(ctx context.Context) error) error {
	deadline := time.Now().Add(patience)
	var last error
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		last = ready(ctx)
		cancel()
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s has ended:\n%s", p.name, p.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not serve after %v: %w\n%s", p.name, patience, last, p.tail())
}

// tail returns the end of the process's output.
func (p *proc) tail() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "out"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-3000):])
}

// kill ends the process as kill -9 does and waits until it is gone.
func (p *proc) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may just have ended
		<-p.done
	}
}

// listens returns nil if a server listens at an address.
func listens(ctx context.Context, addr string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		c.Close()
	}
	return err
}
