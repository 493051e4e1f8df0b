package raftlog

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/storage"
)

// Kind names a log store implementation.
type Kind string

const (
	// WAL is this package's own log, the default: one fsync per append.
	WAL Kind = "wal"
	// Bolt is a bbolt database, package boltlog: two fsyncs per append.
	Bolt Kind = "bolt"

	// memory keeps everything in memory; see Memory.
	memory Kind = "memory"
)

const (
	defaultRetain     = 3
	defaultCacheBytes = 16 << 20
	defaultStallLimit = 5 * time.Second
	// A snapshot of a million znodes of 100 bytes has 190 MB.
	defaultCachedSnapshot = 256 << 20
	// defaultSegmentBytes is a compromise: we can only free whole segments, but each new
	// one costs about four fsyncs.
	defaultSegmentBytes = 32 << 20
)

// Options configures where and how a Store keeps its state.
type Options struct {
	// Kind of log store. Empty means the kind in the directory, or WAL.
	Kind Kind
	// Bolt opens a log of kind Bolt. If a program leaves it nil, bbolt isn't linked.
	Bolt storage.Format
	// LogDir is the directory for the log and the vote. Created if missing.
	LogDir string
	// SnapDir is the directory for the snapshots, which are in SnapDir/snapshots. Created
	// if missing.
	SnapDir string
	// FS is the file system of the directories: default vfs.OS.
	FS vfs.FS
	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
	// Retain is the number of snapshots kept: default 3, at least 1.
	Retain int
	// CachedSnapshot is the number of bytes of a snapshot that go through the page cache,
	// at least a block: default 256 MiB. The rest bypasses the page cache, if the file
	// system supports that.
	CachedSnapshot int64
	// CacheBytes bounds the newest entries kept in memory: default 16 MiB.
	CacheBytes int64
	// NoCache disables the cache of recent entries. It is for a server that sends its log
	// to no other server.
	NoCache bool
	// StallLimit limits the time that Close waits for a running write, and for the
	// removal of segments: default 5 s.
	StallLimit time.Duration
	// SegmentBytes is the size at which the log of kind WAL starts a new file:
	// default 32 MiB. Compaction frees whole files.
	SegmentBytes int

	// wrapEngine lets tests inject faults between Store and its engine.
	wrapEngine func(storage.Engine) storage.Engine
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	o.Retain = cmp.Or(o.Retain, defaultRetain)
	o.CachedSnapshot = cmp.Or(o.CachedSnapshot, defaultCachedSnapshot)
	o.CacheBytes = cmp.Or(o.CacheBytes, defaultCacheBytes)
	o.StallLimit = cmp.Or(o.StallLimit, defaultStallLimit)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, defaultSegmentBytes)
	return o
}

func (o Options) validate() error {
	switch {
	case o.Kind != "" && o.Kind != WAL && o.Kind != Bolt:
		return fmt.Errorf("log store kind %q: want %q or %q", o.Kind, WAL, Bolt)
	case o.LogDir == "":
		return fmt.Errorf("log store: no log directory given")
	case o.SnapDir == "":
		return fmt.Errorf("log store: no snapshot directory given")
	case o.Retain < 1:
		return fmt.Errorf("log store: %d snapshots to retain: at least 1", o.Retain)
	}
	return nil
}
