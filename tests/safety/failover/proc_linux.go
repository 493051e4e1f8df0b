package failover

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/zkgo/zkgo/tests/kit/lossyfs"
)

// sysProcAttr makes the kernel kill a server when the thread that started it ends, so
// that a killed run leaves no server behind.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
func freeze(p *os.Process) error    { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error      { return p.Signal(syscall.SIGCONT) }

// hog starts a process that only uses a processor.
func hog() (*exec.Cmd, error) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	return cmd, cmd.Start()
}

// disk is a file system that is mounted for one server and can delay fsync.
type disk struct{ *lossyfs.Mounted }

// mountDisk mounts a disk at a directory. It requires root.
func mountDisk(dir string) (*disk, error) {
	m, err := lossyfs.Mount(lossyfs.NewDisk(lossyfs.Faults{NoJournal: true}), dir)
	if err != nil {
		return nil, err
	}
	return &disk{m}, nil
}

// machine describes the machine of the measurement.
func machine() string {
	var model, kernel string
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(b))
	}
	return fmt.Sprintf("%s, Linux %s", model, kernel)
}

// load returns the machine's load average of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
