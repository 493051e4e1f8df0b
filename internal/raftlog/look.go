package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/storage"
)

// This file inspects a store's directories without opening the store. It locks nothing
// and changes nothing, so it is safe while a server is running. It may or may not see
// entries that the server appends or removes in the meantime. A log of kind Bolt can be
// read only while the server doesn't write.

// LogFile is one file of a log.
type LogFile struct {
	Path  string
	Kind  Kind
	Bytes int64
	// First and Last are the log's entries in this file, 0 if there are none.
	First, Last uint64
	// Torn: after the last entry there is an append that was never acknowledged, or that
	// is just being written.
	Torn bool
	// Short: the file ends directly after its last entry. A server keeps zeros there,
	// except while the file is growing.
	Short bool
	// Err is the problem with the file. If it is set, First and Last are unknown.
	Err error

	bolt  storage.Format
	spans []span // of the entries from First on; kind WAL
}

// lookTries is the maximum number of attempts to read a file that is being written.
const lookTries = 5

// again retries an inspection that may have raced with a running server.
func again(look func() error) (err error) {
	for range lookTries {
		if err = look(); err == nil {
			return nil
		}
	}
	return err
}

// Log describes a log on disk.
type Log struct {
	// Meta is the file with Raft's term and vote, and for kind WAL the list of the log's
	// files. It is "" if there is no log.
	Meta  string
	Kind  Kind
	Files []LogFile // oldest first

	rec record
}

// LookAtLog reads the metadata of the log in a directory, and scans its files. A
// directory without a log is not an error. bolt may be nil, see Options.Bolt.
func LookAtLog(logDir string, bolt storage.Format) (l Log, err error) {
	isWAL, isBolt, err := kindsIn(vfs.OS{}, logDir)
	if err != nil {
		return l, err
	}
	dir := filepath.Join(logDir, walDirName)
	switch {
	case isBolt && isWAL:
		_, err := chooseKind(vfs.OS{}, logDir, "")
		return l, err
	case isBolt:
		l.Kind, l.Meta = Bolt, filepath.Join(logDir, boltFileName)
		l.Files = []LogFile{l.lookAtBolt(bolt)}
		return l, nil
	case isWAL:
		l.Kind, l.Meta = WAL, filepath.Join(dir, metaName)
		if err = again(func() error { return l.lookAtWAL(dir) }); err != nil {
			l.Files = nil
		}
		return l, err
	}
	names, err := segmentNames(vfs.OS{}, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err == nil && len(names) > 0:
		err = errMetaMissing(filepath.Join(dir, metaName), names)
	}
	return l, err
}

// lookAtWAL fails if a file was removed since the list of files was read.
func (l *Log) lookAtWAL(dir string) error {
	m, err := loadMeta(vfs.OS{}, l.Meta)
	if err != nil {
		return err
	}
	if l.rec, err = decodeRecord(m.Record); err != nil {
		return fmt.Errorf("%s: %w", l.Meta, err)
	}
	l.Files = make([]LogFile, len(m.Segments))
	for i, id := range m.Segments {
		f := &l.Files[i]
		*f = LogFile{Path: filepath.Join(dir, id.name()), Kind: WAL}
		first := max(m.First, id.base)
		f.Err = again(func() error { return f.scan(id, first, segmentEnd(m.Segments, i)) })
		switch {
		case errors.Is(f.Err, fs.ErrNotExist):
			return fmt.Errorf("%w: log index %d was in it", f.Err, first)
		case f.Err != nil:
			f.Err = fmt.Errorf("%s: damaged: %w", f.Path, f.Err)
		}
	}
	if err := l.reaches(); err != nil {
		if n := len(l.Files); n > 0 && l.Files[n-1].Err == nil {
			l.Files[n-1].Err = err
			return nil
		}
		return err
	}
	return nil
}

// Range returns the first and the last index of the log, 0 if it is empty.
func (l *Log) Range() (first, last uint64) {
	for i := range l.Files {
		if f := &l.Files[i]; f.First != 0 {
			if first == 0 {
				first = f.First
			}
			last = f.Last
		}
	}
	return first, last
}

// Started reports whether Raft has stored anything: an entry, or a term.
func (l *Log) Started() bool {
	_, last := l.Range()
	return last != 0 || len(l.rec.Values) > 0
}

// reaches checks the end of the log against the index recorded in its metadata. It
// returns nil if a file of the log can't be read.
func (l *Log) reaches() error {
	for i := range l.Files {
		if l.Files[i].Err != nil {
			return nil
		}
	}
	where := l.Meta
	if n := len(l.Files); n > 0 {
		where = l.Files[n-1].Path
	}
	_, last := l.Range()
	return l.rec.reached(where, last)
}

// Agrees checks that the log continues from the newest snapshot, as a server requires at
// its start. The snapshots, newest first, must have been listed after the log.
func (l *Log) Agrees(snapDir string, snapshots []SnapshotFile) error {
	var newest uint64
	for i := range snapshots {
		if snapshots[i].Err == nil {
			newest = snapshots[i].Meta.Index
			break
		}
	}
	dir := filepath.Join(snapDir, snapDirName)
	if l.Meta == "" {
		if len(snapshots) > 0 {
			return errLogMissing(snapDir, "its log directory")
		}
		return nil
	}
	first, last := l.Range()
	if err := l.rec.covered(dir, max(last, newest)); err != nil {
		return err
	}
	if first > newest+1 {
		return errGap(l.Files[0].Path, dir, first, newest)
	}
	return nil
}

// scan reads a segment that starts at index first, and verifies all its batches.
func (f *LogFile) scan(id segmentID, first, until uint64) error {
	file, err := vfs.OS{}.OpenFile(f.Path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	b, s, err := readSegment(file, id, until, nil)
	if err != nil {
		return err
	}
	f.Bytes, f.Torn = int64(len(b)), s.torn
	f.Short = until == openEnd && f.Bytes-s.end < vfs.BlockSize && s.end < s.limit
	if f.First, f.Last, f.spans = 0, 0, nil; first < s.next() {
		f.First, f.Last, f.spans = first, s.next()-1, s.spans[first-id.base:]
	}
	return nil
}

func (l *Log) lookAtBolt(bolt storage.Format) LogFile {
	f := LogFile{Path: l.Meta, Kind: Bolt, bolt: bolt}
	if bolt == nil {
		f.Err = fmt.Errorf("%s: %w", f.Path, errNoBolt)
		return f
	}
	f.Err = f.whileOpen(again(func() error {
		st, err := vfs.OS{}.Stat(f.Path)
		if err != nil {
			return err
		}
		raw, first, last, err := bolt.Check(vfs.OS{}, f.Path)
		if err != nil {
			return err
		}
		f.Bytes, f.First, f.Last = st.Size(), first, last
		if l.rec, err = decodeRecord(raw); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		return l.rec.reached(f.Path, last)
	}))
	return f
}

// errBoltOpen is returned because bbolt reuses free pages for new data, so a reader
// beside a running server finds a mix of old and new pages.
var errBoltOpen = errors.New("a running server has it open, and a log of kind bolt cannot be read beside one: stop the server, or take a backup")

// whileOpen distinguishes damage from an error caused by another process that writes to
// the file.
func (f *LogFile) whileOpen(err error) error {
	if err != nil && f.Kind == Bolt && f.bolt.Busy(vfs.OS{}, f.Path) {
		return fmt.Errorf("%s: %w", f.Path, errBoltOpen)
	}
	return err
}

// Entries yields the entries of the file in order, each verified. It stops after the
// first error, which names the file and the index.
func (f *LogFile) Entries() iter.Seq2[*raft.Log, error] {
	return func(yield func(*raft.Log, error) bool) {
		if f.Err != nil {
			yield(nil, f.Err)
			return
		}
		stopped := errors.New("enough")
		next := f.First
		take := func(l *raft.Log, err error) error {
			switch {
			case err != nil:
			case l.Index != next:
				err = fmt.Errorf("it is entry %d", l.Index)
			default:
				err = verifySeal(l)
			}
			if err != nil {
				return fmt.Errorf("%s: log index %d: %w", f.Path, next, err)
			}
			next++
			if !yield(l, nil) {
				return stopped
			}
			return nil
		}
		var err error
		if f.Kind == Bolt {
			err = f.bolt.Entries(vfs.OS{}, f.Path, take)
		} else {
			err = f.segmentEntries(take)
		}
		if err != nil && !errors.Is(err, stopped) {
			yield(nil, f.whileOpen(err))
		}
	}
}

func (f *LogFile) segmentEntries(take func(*raft.Log, error) error) error {
	file, err := vfs.OS{}.OpenFile(f.Path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, s := range f.spans {
		b, l := make([]byte, s.len), new(raft.Log)
		_, err := file.ReadAt(b, int64(s.off))
		if err == nil {
			err = decodeEntry(b, l)
		}
		if err := take(l, err); err != nil {
			return err
		}
	}
	return nil
}
