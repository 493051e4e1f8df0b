package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"

	"github.com/zkgo/zkgo/internal/vfs"
)

// The log on raft-wal.
//
// raft-wal decides which segments there are, when a new one starts and how truncation
// affects them. We replace its segment files, meta database and codec, through the
// options it has for that, because of these defects in version 0.4.0 (TestLibrary* show
// each on the unchanged library):
//
//   - A stop between the append that fills a segment and the rotation that
//     follows in the background, even by Close, leaves a log that refuses every
//     further append.
//   - Removing entries from the end seals a segment without an index: after a
//     restart none of its entries can be read.
//   - A damaged record in the middle of the last segment is taken for the end of
//     the log, so everything acknowledged after it is silently lost.
//   - Removing entries from the end while a rotation is pending seals the wrong
//     segment.
//   - A missing last segment is silently replaced by an empty one.
//   - The remains of a half-written record are neither removed nor overwritten,
//     and are later read as records.
//   - A reader can get a segment that a removal is closing (logs.read handles
//     this one).
//   - Errors of a rotation are only logged, Close leaves the meta database open,
//     and decoding a damaged entry can panic.
//
// Layout: LogDir/wal/meta.db and LogDir/wal/*.seg.

const walDirName = "wal"

// walEngine is raft-wal over our files.
type walEngine struct {
	*raftwal.WAL
	meta  *walMeta
	files *segmentFiles
	codec *codec
}

// openWAL opens or creates a log. health gets errors that no call returns.
func openWAL(o Options, health *health) (engine, error) {
	dir := filepath.Join(o.LogDir, walDirName)
	if err := vfs.MkdirSynced(o.FS, dir); err != nil {
		return nil, err
	}
	files := &segmentFiles{
		mu: newTurn(), fs: o.FS, dir: dir, log: o.Logger, flights: newFlights(health),
		removals: newRemovals(o),
	}
	meta, err := openWALMeta(dir, files, health.fail)
	if err != nil {
		return nil, err
	}
	// Do this before raft-wal lists the files: it would delete a leftover file only after
	// creating a new one, perhaps with the same name.
	if err := files.removeUnknown(meta.segments()); err != nil {
		return nil, errors.Join(err, meta.close())
	}
	files.willRead(meta.segments())
	codec := new(codec)
	w, err := raftwal.Open(dir,
		raftwal.WithMetaStore(meta),
		raftwal.WithSegmentFiler(files),
		raftwal.WithCodec(codec),
		raftwal.WithSegmentSize(o.SegmentBytes),
		raftwal.WithLogger(hclog.NewNullLogger()), // files and meta report all errors
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), files.closeAll(), meta.close())
	}
	return &walEngine{WAL: w, meta: meta, files: files, codec: codec}, nil
}

func (w *walEngine) LoadRecord() ([]byte, error) { return w.meta.record(), nil }
func (w *walEngine) SaveRecord(rec []byte) error { return w.meta.saveRecord(rec) }

// StoreLogs returns after one fsync. The next segment is started in the background, and
// the next call that writes waits for it.
func (w *walEngine) StoreLogs(logs []*raft.Log) error {
	if err := w.files.flights.settle(); err != nil {
		return err
	}
	return w.append(logs, false)
}

// Launch implements launcher.
func (w *walEngine) Launch(logs []*raft.Log) error { return w.append(logs, true) }

// Await implements launcher.
func (w *walEngine) Await(index uint64) bool { return w.files.flights.await(index) }

func (w *walEngine) append(logs []*raft.Log, launch bool) error {
	if err := w.files.awaitRotation(); err != nil {
		return err
	}
	defer w.codec.room.empty()
	w.files.launch = launch
	return w.WAL.StoreLogs(logs)
}

// DeleteRange waits for a pending rotation: otherwise raft-wal would seal the segment
// that the removal has just started.
func (w *walEngine) DeleteRange(lo, hi uint64) error {
	if err := w.files.flights.settle(); err != nil {
		return err
	}
	if err := w.files.awaitRotation(); err != nil {
		return err
	}
	return w.WAL.DeleteRange(lo, hi)
}

func (w *walEngine) Where(index uint64) string { return w.files.where(index) }

// Release implements launcher.
func (w *walEngine) Release() { w.files.flights.close() }

// Close also closes what raft-wal leaves open.
func (w *walEngine) Close() error {
	rotation := w.files.awaitRotation()
	return errors.Join(rotation, w.WAL.Close(), w.files.closeAll(), w.meta.close())
}

// walExists reports whether dir holds a log of kind WAL.
func walExists(fsys vfs.FS, dir string) (bool, error) {
	return vfs.Exists(fsys, filepath.Join(dir, walDirName, walMetaName))
}

func removeAndSync(fsys vfs.FS, dir string, names []string) error {
	for _, n := range names {
		// A removal that hung when the log was closed may complete only now.
		if err := fsys.Remove(filepath.Join(dir, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fsys.SyncDir(dir)
}
