package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/raft-wal/types"

	"github.com/zkgo/zkgo/internal/vfs"
)

const segSuffix = ".seg"

// segmentFiles creates, opens and removes the files of a log, for raft-wal.
type segmentFiles struct {
	fs  vfs.FS
	dir string
	log *slog.Logger

	removals *removals
	flights  *flights
	launch   bool // Append needn't wait; owned by the goroutine that appends

	mu       turn
	open     []*segment
	prepared *segment      // made by prepare, fetched by Create
	rotation chan struct{} // non-nil from a full segment until the next one exists
	err      error         // why a rotation failed
}

var _ types.SegmentFiler = (*segmentFiles)(nil)

func segmentName(info types.SegmentInfo) string {
	return fmt.Sprintf("%020d-%016x%s", info.BaseIndex, info.ID, segSuffix)
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

// removeUnknown removes files that never became part of the log, or no longer are.
func (s *segmentFiles) removeUnknown(known []types.SegmentInfo) error {
	names, err := segmentNames(s.fs, s.dir)
	if err != nil {
		return err
	}
	for _, info := range known {
		name := segmentName(info)
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	return removeAndSync(s.fs, s.dir, names)
}

// willRead lets the operating system start to read all files, which are about to be
// scanned one by one. They were written past the page cache.
func (s *segmentFiles) willRead(known []types.SegmentInfo) {
	for _, info := range known {
		f, err := s.fs.OpenFile(filepath.Join(s.dir, segmentName(info)), os.O_RDONLY, 0)
		if err != nil {
			continue // the scan reports it
		}
		vfs.WillRead(f)
		_ = f.Close() // nothing was written
	}
}

// prepare creates the file of the last segment, unless it exists, and makes its directory
// entry durable.
func (s *segmentFiles) prepare(all []types.SegmentInfo) error {
	if len(all) == 0 || !all[len(all)-1].SealTime.IsZero() {
		return nil
	}
	info := all[len(all)-1]
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.open, func(g *segment) bool { return g.info.ID == info.ID }) {
		return nil
	}
	g, err := createSegment(s.fs, filepath.Join(s.dir, segmentName(info)), info)
	if err == nil {
		err = s.fs.SyncDir(s.dir)
	}
	if err != nil {
		return err
	}
	g.files, s.prepared = s, g
	s.open = append(s.open, g)
	return nil
}

// Create implements types.SegmentFiler.
func (s *segmentFiles) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.prepared
	s.prepared = nil
	if g == nil || g.info.ID != info.ID {
		err := fmt.Errorf("segment %s was not prepared", segmentName(info))
		s.endRotationLocked(err)
		return nil, err
	}
	s.endRotationLocked(nil) // this goroutine still holds raft-wal's write lock
	return g, nil
}

// RecoverTail implements types.SegmentFiler: it opens the last segment and cuts off
// appends that were never acknowledged.
func (s *segmentFiles) RecoverTail(info types.SegmentInfo) (types.SegmentWriter, error) {
	g, found, err := s.openSegment(info, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if found.torn {
		s.log.Warn("log: cutting off the last record, which is incomplete or damaged; one that was never whole was never acknowledged, "+
			"of one that was damaged afterwards the writes are lost here",
			"file", g.path, "index", found.next(info), "byte", found.end, "bytes", found.size-found.end)
		if err := g.cut(found); err != nil {
			return nil, fmt.Errorf("%s: cutting off an incomplete record: %w", g.path, err)
		}
	}
	g.tail, err = openTail(s.fs, g.path, g.f, found.end, found.size)
	return g, err
}

// Open implements types.SegmentFiler: it opens a sealed segment.
func (s *segmentFiles) Open(info types.SegmentInfo) (types.SegmentReader, error) {
	g, _, err := s.openSegment(info, os.O_RDONLY)
	return g, err
}

func (s *segmentFiles) openSegment(info types.SegmentInfo, flag int) (*segment, *scan, error) {
	path := filepath.Join(s.dir, segmentName(info))
	g, found, err := openSegment(s.fs, path, info, flag)
	if errors.Is(err, fs.ErrNotExist) {
		// Not wrapped: raft-wal would silently create a new last segment.
		err = fmt.Errorf("%w: log index %d was in it", errSegmentMissing, info.MinIndex)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.files = s
	s.open = append(s.open, g)
	return g, found, nil
}

// List implements types.SegmentFiler. removeUnknown has already removed what it would
// report.
func (s *segmentFiles) List() (map[uint64]uint64, error) { return map[uint64]uint64{}, nil }

// Delete implements types.SegmentFiler. The list of segments no longer names the file; if
// it reappears after a power failure, removeUnknown removes it.
func (s *segmentFiles) Delete(base, id uint64) error {
	s.removals.add(filepath.Join(s.dir, segmentName(types.SegmentInfo{BaseIndex: base, ID: id})))
	return nil
}

func (s *segmentFiles) beginRotation() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rotation == nil {
		s.rotation = make(chan struct{})
	}
}

func (s *segmentFiles) endRotationLocked(err error) {
	if err != nil {
		s.err = err
	}
	if s.rotation != nil {
		close(s.rotation)
		s.rotation = nil
	}
}

// rotationFailed ends a rotation that won't complete.
func (s *segmentFiles) rotationFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endRotationLocked(err)
}

// awaitRotation returns when no rotation is pending.
func (s *segmentFiles) awaitRotation() error {
	s.mu.Lock()
	c := s.rotation
	s.mu.Unlock()
	if c != nil {
		<-c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// where returns the path of the file that holds an entry.
func (s *segmentFiles) where(index uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range slices.Backward(s.open) {
		if g.info.BaseIndex <= index {
			return g.path
		}
	}
	return s.dir
}

func (s *segmentFiles) closeAll() error {
	s.mu.Lock()
	all := slices.Clone(s.open)
	s.mu.Unlock()
	var errs []error
	for _, g := range all {
		errs = append(errs, g.Close())
	}
	errs = append(errs, s.removals.wait())
	return errors.Join(errs...)
}

func (s *segmentFiles) closed(g *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(o *segment) bool { return o == g })
}
