package limits

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"
)

// SystemMemory returns the memory limit of this process's control group, or the
// machine's memory if that is less, in bytes; 0 if neither is known.
func SystemMemory() int64 { return memoryOf(os.ReadFile) }

// memoryOf is SystemMemory with a file system that tests can replace.
func memoryOf(read func(name string) ([]byte, error)) int64 {
	least := int64(0)
	note := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	note(physical(read))
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		root, file := "/sys/fs/cgroup", "memory.max"
		switch {
		case controllers == "memory":
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case controllers != "":
			continue
		}
		// The limits of all parent groups apply too. In a container the path may be the
		// host's and not exist here, but the root always does.
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
			if text, err := read(path.Join(root, dir, file)); err == nil {
				n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is 0
				note(n)
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// physical returns the machine's memory.
func physical(read func(name string) ([]byte, error)) int64 {
	text, err := read("/proc/meminfo")
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
