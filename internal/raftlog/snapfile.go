package raftlog

import (
	"bufio"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
)

// snapMeta is the content of meta.json.
type snapMeta struct {
	raft.SnapshotMeta
	StateSum uint32 // CRC32C of state.bin
}

func readSnapMeta(fsys vfs.FS, dir string) (*snapMeta, error) {
	path := filepath.Join(dir, snapMetaName)
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	m := &snapMeta{}
	if err := decodeChecked(b, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("%s: it is of snapshot %s", path, m.ID)
	}
	return m, nil
}

// openSnapshot opens the state of a snapshot for reading from the start. If verify is set, it
// first verifies the snapshot.
func openSnapshot(fsys vfs.FS, dir string, verify bool) (*snapMeta, *snapReader, error) {
	m, f, err := readSnapshot(fsys, dir, 0, verify)
	if err == nil {
		if _, err = f.Seek(0, io.SeekStart); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return m, &snapReader{Reader: bufio.NewReaderSize(f, snapBufferSize), f: f, ended: func() {}}, nil
}

// readSnapshot opens the state of a snapshot with flag. If verify is set, it reads all of it.
func readSnapshot(fsys vfs.FS, dir string, flag int, verify bool) (*snapMeta, vfs.File, error) {
	m, err := readSnapMeta(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, snapStateName)
	f, err := fsys.OpenFile(path, os.O_RDONLY|flag, 0)
	if err != nil {
		return nil, nil, err
	}
	if !verify {
		return m, f, nil
	}
	sum := crc32.New(castagnoli)
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, vfs.Blocks(snapBufferSize)[:snapBufferSize])
	if err == nil && (n != m.Size || sum.Sum32() != m.StateSum) {
		err = fmt.Errorf("damaged: %d bytes with checksum %08x, expected %d with %08x", n, sum.Sum32(), m.Size, m.StateSum)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, f, nil
}

// snapReader reads the state of a snapshot.
type snapReader struct {
	io.Reader
	f     io.Closer
	ended func()
}

func (r *snapReader) Close() error {
	defer r.ended()
	return r.f.Close()
}

// snapSink writes a snapshot under a temporary name.
type snapSink struct {
	store  *fileSnapshots
	dir    string // temporary
	meta   snapMeta
	state  *stateWriter
	sum    hash.Hash32
	size   int64
	closed bool
}

var _ raft.SnapshotSink = (*snapSink)(nil)

func newSnapSink(s *fileSnapshots, meta raft.SnapshotMeta) (*snapSink, error) {
	dir := filepath.Join(s.dir, meta.ID+snapTmpSuffix)
	if err := s.fs.Mkdir(dir, 0o750); err != nil {
		return nil, err
	}
	state, err := newStateWriter(s.fs, filepath.Join(dir, snapStateName), s.cached)
	if err != nil {
		return nil, errors.Join(err, s.fs.RemoveAll(dir))
	}
	return &snapSink{store: s, dir: dir, meta: snapMeta{SnapshotMeta: meta}, state: state, sum: crc32.New(castagnoli)}, nil
}

// ID implements raft.SnapshotSink.
func (k *snapSink) ID() string { return k.meta.ID }

// Write implements raft.SnapshotSink.
func (k *snapSink) Write(b []byte) (int, error) {
	n, err := k.state.Write(b)
	k.sum.Write(b[:n])
	k.size += int64(n)
	return n, err
}

// Cancel implements raft.SnapshotSink: it removes the files written so far.
func (k *snapSink) Cancel() error {
	if k.closed {
		return nil
	}
	k.closed = true
	return errors.Join(k.state.close(), k.store.fs.RemoveAll(k.dir))
}

// Close implements raft.SnapshotSink: it makes the snapshot durable, then gives it its
// final name. If it fails there is no snapshot.
func (k *snapSink) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	if err := k.finish(); err != nil {
		return errors.Join(fmt.Errorf("snapshot %s: %w", k.meta.ID, err), k.store.fs.RemoveAll(k.dir))
	}
	final := filepath.Join(k.store.dir, k.meta.ID)
	err := k.store.fs.Rename(k.dir, final)
	if err == nil {
		err = k.store.fs.SyncDir(k.store.dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot %s: %w", k.meta.ID, err), k.store.fs.RemoveAll(k.dir), k.store.fs.RemoveAll(final))
	}
	if k.store.saved != nil {
		if err := k.store.saved(k.meta.Index); err != nil {
			return err
		}
	}
	k.store.purge()
	return nil
}

// finish makes both files and their directory entries durable.
func (k *snapSink) finish() error {
	if err := k.state.finish(); err != nil {
		return err
	}
	k.meta.Size, k.meta.StateSum = k.size, k.sum.Sum32()
	b, err := encodeChecked(k.meta)
	if err != nil {
		return err
	}
	path := filepath.Join(k.dir, snapMetaName)
	if err := vfs.WriteFile(k.store.fs, path, b, 0o640); err != nil {
		return err
	}
	return k.store.fs.SyncDir(k.dir)
}
