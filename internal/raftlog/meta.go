package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/zkgo/zkgo/internal/vfs"
)

// metaName is the file in the log's directory that lists the segments of the log. It
// also stores the record with the term and the vote. We replace the file atomically,
// so a power failure leaves either the old or the new file. A wrong checksum
// therefore means damage.
const metaName = "meta.json"

// metaState is the content of the file. A metaState isn't changed once it is in a meta.
type metaState struct {
	First    uint64      `json:"first"`    // index of the log's first entry; the first segment may start before it
	Segments []segmentID `json:"segments"` // oldest first; each ends at the start of the next
	Record   []byte      `json:"record"`
}

// meta is the file of an open log.
type meta struct {
	fs   vfs.FS
	path string

	mu    turn
	state metaState
}

// loadMeta reads the file. The error is fs.ErrNotExist if there is none.
func loadMeta(fsys vfs.FS, path string) (s metaState, err error) {
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return s, err
	}
	if err = decodeChecked(b, &s); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return s, err
}

// openMeta reads the file, or creates it. If it is missing although there are segments, it
// was lost. In that case we return an error, because if we started over, we would lose the
// segments.
func openMeta(fsys vfs.FS, dir string) (*meta, error) {
	m := &meta{fs: fsys, path: filepath.Join(dir, metaName), mu: newTurn()}
	var err error
	if m.state, err = loadMeta(fsys, m.path); !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	names, err := segmentNames(fsys, dir)
	switch {
	case err != nil:
		return nil, err
	case len(names) > 0:
		return nil, errMetaMissing(m.path, names)
	}
	return m, m.change(func(*metaState) {})
}

func errMetaMissing(path string, segments []string) error {
	return fmt.Errorf("%s is missing, but there are log segments: %s", path, segments[0])
}

// change replaces the state durably.
func (m *meta) change(f func(*metaState)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.state
	f(&next)
	b, err := encodeChecked(next)
	if err == nil {
		err = vfs.ReplaceFile(m.fs, m.path, b, 0o640)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.path, err)
	}
	m.state = next
	return nil
}
