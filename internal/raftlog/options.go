package raftlog

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
)

// Kind names a log store implementation.
type Kind string

const (
	// WAL is hashicorp/raft-wal, the default: one fsync for each append.
	WAL Kind = "wal"
	// Bolt is hashicorp/raft-boltdb: two fsyncs for each append.
	Bolt Kind = "bolt"

	// memory keeps everything in memory; see Memory.
	memory Kind = "memory"
)

const (
	defaultRetain     = 3
	defaultCacheBytes = 16 << 20
	defaultStallLimit = 5 * time.Second
	// defaultCachedSnapshot: a snapshot of a million znodes of 100 bytes has 190 MB.
	defaultCachedSnapshot = 256 << 20
	// defaultSegmentBytes: compaction frees whole segments, and each new one
	// costs about four fsyncs.
	defaultSegmentBytes = 32 << 20
)

// Options says where and how a Store keeps its state.
type Options struct {
	// Kind of log store. Empty means the kind the directory holds, or WAL.
	Kind Kind
	// LogDir is where log and vote live. Created if missing.
	LogDir string
	// SnapDir is where snapshots live, in SnapDir/snapshots. Created if missing.
	SnapDir string
	// FS is what the directories are on: default vfs.OS.
	FS vfs.FS
	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
	// Retain is the number of snapshots kept: default 3, at least 1.
	Retain int
	// CachedSnapshot is how many bytes of a snapshot are written through the page cache,
	// at least a block: default 256 MiB. What is behind goes past it, where the file
	// system can do that.
	CachedSnapshot int64
	// CacheBytes bounds the newest entries kept in memory: default 16 MiB.
	CacheBytes int64
	// NoCache: nothing of an entry is kept in memory once StoreLogs has returned.
	// It is for a server whose log nobody else asks for.
	NoCache bool
	// Behind: StoreLogs returns before commands are on disk, and writes the next
	// while it still writes those before; Store.Await says when they are there. Raft
	// takes entries for durable that are not yet: it is for a server that is the only
	// voter, whose state machine awaits what it applies. A log of kind Bolt ignores it.
	Behind bool
	// StallLimit is how long Close waits for a running write, and for segments that
	// are being removed: default 5 s.
	StallLimit time.Duration
	// SegmentBytes is the size at which the log of kind WAL starts a new file:
	// default 32 MiB. Compaction frees whole files.
	SegmentBytes int

	// wrapEngine lets tests put faults between Store and its engine.
	wrapEngine func(engine) engine
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Retain == 0 {
		o.Retain = defaultRetain
	}
	if o.CachedSnapshot <= 0 {
		o.CachedSnapshot = defaultCachedSnapshot
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.StallLimit <= 0 {
		o.StallLimit = defaultStallLimit
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
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
