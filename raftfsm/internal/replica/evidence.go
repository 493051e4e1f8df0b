package replica

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// divergenceFile, in the snapshot directory, is a dump of a server's state that
	// differs from the leader's. We keep only the first dump: it is closest to the cause,
	// and a server that restarts in a loop must not fill the disk.
	divergenceFile = "diverged.txt"
	// maxDivergenceFile is the maximum size of the dump in bytes.
	maxDivergenceFile = 64 << 20
)

// errCut ends a dump that reached its maximum size.
var errCut = errors.New("too long")

// keepEvidence writes divergenceFile and returns a phrase with its path for the operator.
func (r *Replica) keepEvidence(write func(io.Writer) error) string {
	if r.cfg.Memory {
		return "its state is not kept: the server has no directory"
	}
	path := filepath.Join(r.cfg.Dirs.Snap, divergenceFile)
	f, err := r.cfg.Dirs.FS.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "its state when that was first seen is in " + path
	}
	if err == nil {
		err = write(&cutter{w: f, left: maxDivergenceFile})
		if errors.Is(err, errCut) {
			_, err = f.Write([]byte("\n(the rest is left out)\n"))
		}
		err = errors.Join(err, f.Sync(), f.Close(), r.cfg.Dirs.FS.SyncDir(filepath.Dir(path)))
	}
	if err != nil {
		return fmt.Sprintf("its state could not be written to %s: %v", path, err)
	}
	return "its state is in " + path
}

// cutter is a writer that passes on at most left bytes.
type cutter struct {
	w    io.Writer
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	cut := min(len(b), c.left)
	n, err := c.w.Write(b[:cut])
	c.left -= n
	if err == nil && cut < len(b) {
		err = errCut
	}
	return n, err
}
