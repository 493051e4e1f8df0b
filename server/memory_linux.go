package server

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"
)

// systemMemory is what the control group of this process may use, or what the
// machine has if that is less, in bytes; 0 when neither can be found out.
func systemMemory() int64 { return memoryOf(os.ReadFile) }

// memoryOf is systemMemory on a file system of the test's.
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
		// A limit of any group above holds too. In a container the path may be the
		// host's and not exist here; the root always does.
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

// physical is what the machine has.
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
