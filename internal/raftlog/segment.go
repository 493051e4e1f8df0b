package raftlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/vfs"
)

const (
	segSuffix  = ".seg"
	segPattern = "%020d-%016x" + segSuffix // base index, salt
)

// segment is one open file of the log.
type segment struct {
	segmentID
	path  string
	f     vfs.File // for reading
	spans []span   // of the entries from base on; guarded by wal.mu
	tail  *tail    // of the last segment; nil: this one is read-only
}

// next returns the index that the next entry would have.
func (g *segment) next() uint64 { return g.base + uint64(len(g.spans)) }

func (g *segment) close() error { return errors.Join(g.tail.close(), g.f.Close()) }

// createSegment creates a file and makes it and its directory entry durable. So if a file
// in the metadata is missing or shorter, it was lost or cut.
func createSegment(fsys vfs.FS, dir string, h *health, base uint64, limit int64) (*segment, error) {
	g := &segment{segmentID: newSegmentID(base)}
	g.path = filepath.Join(dir, g.name())
	f, err := fsys.OpenFile(g.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	g.f = f
	b := make([]byte, initialSize(limit))
	copy(b, encodeSegmentHeader(g.segmentID, limit))
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err == nil {
		g.tail, err = openTail(fsys, g.path, h, b, segHeaderLen, limit)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return g, nil
}

// openSegment opens and verifies a file. until is the first index of the next segment. In
// the last segment it cuts off an append that was never acknowledged, and log gets a line
// about that. It reads into buf, which it may replace with a larger one.
func openSegment(fsys vfs.FS, dir string, h *health, id segmentID, until uint64, buf *[]byte, log *slog.Logger) (*segment, error) {
	g := &segment{segmentID: id, path: filepath.Join(dir, id.name())}
	flag := os.O_RDONLY
	if until == openEnd {
		flag = os.O_RDWR
	}
	f, err := fsys.OpenFile(g.path, flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: log index %d was in it", g.path, errSegmentMissing, id.base)
	}
	if err != nil {
		return nil, err
	}
	g.f = f
	b, s, err := readSegment(f, id, until, *buf)
	*buf = b
	if err == nil && until == openEnd {
		g.tail, err = recoverTail(fsys, g, h, b, s, log)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", g.path, err), f.Close())
	}
	g.spans = s.spans
	return g, nil
}

// readSegment reads and verifies a file. It returns the content, in the memory of buf if that
// is large enough.
func readSegment(f vfs.File, id segmentID, until uint64, buf []byte) ([]byte, *scan, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if st.Size() > math.MaxUint32 {
		return nil, nil, fmt.Errorf("the file has %d bytes, more than a segment may have", st.Size())
	}
	b := slices.Grow(buf[:0], int(st.Size()))[:st.Size()]
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	clear(b[n:])
	s, err := scanSegment(b, id, until)
	return b, s, err
}

// recoverTail opens the end of the last segment. If an append was interrupted there, we
// first overwrite its remains with zeros.
func recoverTail(fsys vfs.FS, g *segment, h *health, b []byte, s *scan, log *slog.Logger) (*tail, error) {
	if s.torn {
		log.Warn("log: cutting off the last record, which is incomplete or damaged; if it was never complete, it was never acknowledged; "+
			"if it was damaged later, this server loses its writes",
			"file", g.path, "index", s.next(), "byte", s.end, "bytes", int64(len(b))-s.end)
		clear(b[s.end:])
		_, err := g.f.WriteAt(b[s.end:], s.end)
		if err == nil {
			err = g.f.Sync()
		}
		if err != nil {
			return nil, fmt.Errorf("cutting off an incomplete record: %w", err)
		}
	}
	return openTail(fsys, g.path, h, b, s.end, s.limit)
}

func segmentNames(fsys vfs.FS, dir string) ([]string, error) {
	all, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range all {
		if strings.HasSuffix(e.Name(), segSuffix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// removeUnknown removes files that aren't part of the log.
func removeUnknown(fsys vfs.FS, dir string, known []segmentID) error {
	names, err := segmentNames(fsys, dir)
	if err != nil {
		return err
	}
	for _, id := range known {
		names = slices.DeleteFunc(names, func(n string) bool { return n == id.name() })
	}
	for _, n := range names {
		// A removal that hung while the log was closed may complete only now.
		if err := fsys.Remove(filepath.Join(dir, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fsys.SyncDir(dir)
}
