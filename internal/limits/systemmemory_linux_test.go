package limits

import (
	"os"
	"testing"
)

func TestSystemMemory(t *testing.T) {
	t.Parallel()
	const meminfo = "MemTotal:        1000 kB\nMemFree:         1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing":  {nil, 0},
		"no group": {map[string]string{"/proc/meminfo": meminfo}, 1000 << 10},
		"version 2": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "5000\n"}, 5000},
		"in a container": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/docker/x\n",
			"/sys/fs/cgroup/memory.max": "7000\n"}, 7000},
		"version 1": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "3:cpu,cpuacct:/x\n2:memory:/x\n",
			"/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9000\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 9000},
		"above the machine": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/\n",
			"/sys/fs/cgroup/memory.max": "9999999\n"}, 1000 << 10},
	} {
		got := memoryOf(func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if SystemMemory() <= 0 {
		t.Error("this machine has no memory")
	}
}
