package terminal

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxHistory is the size in bytes of the largest history file that is read.
const maxHistory = 16 << 20

// ReadRegular returns the content of a regular file of at most limit bytes. Of a special
// file, which may have no end, e.g. a device or a FIFO, it reads nothing.
func ReadRegular(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name) // before Open, which would wait for a FIFO's writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is %s, and not a regular file of at most %d MiB", name, KindOf(info.Mode()), limit>>20)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, limit>>20)
	}
	return data, err
}

// KindOf names the kind of a file that isn't a regular file.
func KindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
