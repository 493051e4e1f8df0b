package machine

import (
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// Environment returns ZooKeeper's keys, each with the closest value of a Go program.
func Environment(version string) []status.Pair {
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	name, home := "unknown", ""
	if u, err := user.Current(); err == nil {
		name, home = u.Username, u.HomeDir
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	limit := debug.SetMemoryLimit(-1)
	return []status.Pair{
		{Key: "zookeeper.version", Value: version},
		{Key: "host.name", Value: host},
		{Key: "java.version", Value: runtime.Version()},
		{Key: "java.vendor", Value: "none: zkgo is written in Go"},
		{Key: "java.home", Value: ""},
		{Key: "java.class.path", Value: ""},
		{Key: "java.library.path", Value: ""},
		{Key: "java.io.tmpdir", Value: os.TempDir()},
		{Key: "java.compiler", Value: runtime.Compiler},
		{Key: "os.name", Value: osName()},
		{Key: "os.arch", Value: runtime.GOARCH},
		{Key: "os.version", Value: kernelVersion()},
		{Key: "user.name", Value: name},
		{Key: "user.home", Value: home},
		{Key: "user.dir", Value: dir},
		{Key: "os.memory.free", Value: megabytes(mem.HeapIdle)},
		{Key: "os.memory.max", Value: megabytes(uint64(limit))},
		{Key: "os.memory.total", Value: megabytes(mem.Sys)},
	}
}

func megabytes(n uint64) string { return strconv.FormatUint(n>>20, 10) + "MB" }

// osName returns the system's name as Java spells it.
func osName() string {
	switch runtime.GOOS {
	case "darwin":
		return "Mac OS X"
	case "":
		return ""
	}
	return strings.ToUpper(runtime.GOOS[:1]) + runtime.GOOS[1:]
}

func kernelVersion() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// FileDescriptors returns the number of open file descriptors and their limit; −1 if
// the system doesn't report it.
func FileDescriptors() (open, limit int64) {
	open = -1
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		open = int64(len(fds))
	}
	return open, maxFDs()
}
