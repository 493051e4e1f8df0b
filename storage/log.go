package storage

import "github.com/hashicorp/raft"

// Engine is a log and one small record. The server serialises the calls that write; reads
// may run concurrently. When a call that writes returns, its effect is durable.
type Engine interface {
	// Range returns the first and the last index, 0 if the log is empty.
	Range() (first, last uint64, err error)
	GetLog(index uint64, log *raft.Log) error
	StoreLogs(logs []*raft.Log) error
	// DeleteRange removes a prefix or a suffix.
	DeleteRange(lo, hi uint64) error
	// LoadRecord returns the record, nil if none was ever saved.
	LoadRecord() ([]byte, error)
	// SaveRecord replaces the record as a whole.
	SaveRecord(rec []byte) error
	// Where returns the name of the file with an entry, or with the record for index 0,
	// for messages.
	Where(index uint64) string
	Close() error
}

// Format opens and inspects a log that is a single file.
type Format interface {
	// Open opens the file. If it is missing, Open creates it with a first record.
	Open(fsys FS, path string, rec []byte) (Engine, error)
	// Check verifies the file without opening it, and returns its record and the range
	// of its entries.
	Check(fsys FS, path string) (rec []byte, first, last uint64, err error)
	// Entries calls visit with every entry in order, or why it can't be decoded.
	Entries(fsys FS, path string, visit func(*raft.Log, error) error) error
	// Busy reports whether another process has the file open.
	Busy(fsys FS, path string) bool
}
