package locks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/compat/peers"
)

// proc is a process that ends with this one at the latest.
type proc struct {
	name string
	args []string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts a command; its output goes to a separate file.
func launch(dir, name string, args ...string) (*proc, error) {
	p := &proc{name: name, args: args, log: filepath.Join(dir, name+".log"), cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = out, out, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child when the thread that started it ends: keep that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its log says how it ended
		}
	}()
	return p, <-started
}

func (p *proc) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *proc) kill() {
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.done
}

// freeze stops the process and returns when it has stopped.
func (p *proc) freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return eventually(func() (bool, error) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		_, state, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(state, "T"), err
	})
}

func (p *proc) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// patience bounds every wait for something that should take seconds at most.
const patience = 2 * time.Minute

// eventually waits until an external condition holds or there is an error.
func eventually(what func() (bool, error)) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if there, err := what(); there || err != nil {
			return err
		}
	}
	return fmt.Errorf("not within %v", patience)
}

// tail returns the end of the process's output.
func (p *proc) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s:\n%s", p.name, b[max(0, len(b)-3000):])
}

// tools start the workers in other languages.
type tools struct{ java, python []string }

// findTools installs missing tools, or skips the test if the environment doesn't ask for
// it.
func findTools(t *testing.T) tools {
	t.Helper()
	found := peers.Find(t, "../interop")
	return tools{java: found.Java(t, "workers/Locks.java"), python: []string{found.Python, "-B", "workers/locks.py"}}
}

// command returns the command line of a worker, without the jobs.
func (k tools) command(t *testing.T, lang string) []string {
	t.Helper()
	switch lang {
	case "java":
		return slices.Clone(k.java)
	case "python":
		return slices.Clone(k.python)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kind := "careful"
	if lang == "go-careless" {
		kind = "careless"
	}
	return []string{self, "worker", kind}
}
