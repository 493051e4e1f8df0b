package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/zkgo/zkgo/internal/vfs"
)

const (
	boltFileName  = "raft.bolt"
	boltLogs      = "logs" // raft-boltdb's buckets
	boltConf      = "conf"
	boltRecordKey = "zkgo"
)

// boltOptions rebuilds the freelist at Open. Writing it with every transaction would add
// one more thing that can be damaged.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:        time.Second,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		PageSize:       boltPageSize,
	}
}

// boltEngine is raft-boltdb.
type boltEngine struct {
	*raftboltdb.BoltStore
	fs   vfs.FS
	path string
}

// openDatabase opens one of our own databases.
func openDatabase(fsys vfs.FS, name string) (*bbolt.DB, error) {
	path, lazy, err := fsys.Database(name)
	if err != nil {
		return nil, err
	}
	o := boltOptions()
	o.NoSync, o.NoGrowSync = lazy, lazy
	return bbolt.Open(path, 0o640, o)
}

// newBoltStore opens a raft-boltdb database. Opening starts with a transaction.
func newBoltStore(fsys vfs.FS, name string) (store *raftboltdb.BoltStore, err error) {
	path, lazy, err := fsys.Database(name)
	if err != nil {
		return nil, err
	}
	o := raftboltdb.Options{Path: path, BoltOptions: boltOptions(), NoSync: lazy}
	o.BoltOptions.NoGrowSync = lazy
	err = fsys.Commit(name, func() error {
		store, err = raftboltdb.New(o)
		return err
	})
	if err != nil && store != nil {
		err = errors.Join(err, store.Close())
	}
	return store, err
}

func openBolt(fsys vfs.FS, dir string) (engine, error) {
	path := filepath.Join(dir, boltFileName)
	found, err := vfs.Exists(fsys, path)
	if err == nil && !found {
		err = createAtomic(fsys, path, func(tmp string) error { return initBolt(fsys, tmp) })
	}
	if err != nil {
		return nil, err
	}
	if _, _, _, err := checkBoltLog(fsys, path); err != nil {
		return nil, err
	}
	store, err := newBoltStore(fsys, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &boltEngine{BoltStore: store, fs: fsys, path: path}, nil
}

// initBolt writes a first record: a file without a record is damaged.
func initBolt(fsys vfs.FS, tmp string) error {
	store, err := newBoltStore(fsys, tmp)
	if err != nil {
		return err
	}
	empty := record{}
	err = fsys.Commit(tmp, func() error { return store.Set([]byte(boltRecordKey), empty.encode()) })
	if err != nil {
		store.Close()
		return err
	}
	return store.Close()
}

// checkBoltLog verifies the file, and that it holds one record and a log without gaps. It
// returns the record and the range of the log. The entries themselves are verified when
// they are read.
func checkBoltLog(fsys vfs.FS, path string) (rec []byte, first, last uint64, err error) {
	var records int
	_, err = checkBolt(fsys, path, func(bucket string, key, val []byte) error {
		switch bucket {
		case boltConf:
			if string(key) != boltRecordKey {
				return fmt.Errorf("unknown key %q in bucket %s", key, bucket)
			}
			records++
			rec = bytes.Clone(val)
		case boltLogs:
			if len(key) != 8 {
				return fmt.Errorf("key %x in bucket %s is not a log index", key, bucket)
			}
			index := binary.BigEndian.Uint64(key)
			if last != 0 && index != last+1 {
				return fmt.Errorf("log index %d follows %d", index, last)
			}
			if last = index; first == 0 {
				first = index
			}
		default:
			return fmt.Errorf("unknown bucket %q", bucket)
		}
		return nil
	})
	if err == nil && (records != 1 || rec == nil) {
		err = fmt.Errorf("%s is damaged: %w", path, errBadRecord)
	}
	return rec, first, last, err
}

func (b *boltEngine) LoadRecord() ([]byte, error) {
	v, err := b.Get([]byte(boltRecordKey))
	return bytes.Clone(v), err
}

func (b *boltEngine) SaveRecord(rec []byte) error {
	return b.fs.Commit(b.path, func() error { return b.Set([]byte(boltRecordKey), rec) })
}

// StoreLogs appends in one transaction.
func (b *boltEngine) StoreLogs(logs []*raft.Log) error {
	return b.fs.Commit(b.path, func() error { return b.BoltStore.StoreLogs(logs) })
}

// DeleteRange removes entries in one transaction.
func (b *boltEngine) DeleteRange(lo, hi uint64) error {
	return b.fs.Commit(b.path, func() error { return b.BoltStore.DeleteRange(lo, hi) })
}

func (b *boltEngine) Where(uint64) string { return b.path }

// GetLog wraps the decoder's errors, which vary for damaged entries.
func (b *boltEngine) GetLog(index uint64, log *raft.Log) error {
	err := b.BoltStore.GetLog(index, log)
	if err != nil && err != raft.ErrLogNotFound {
		return fmt.Errorf("decoding: %w", err)
	}
	return err
}

// boltExists reports whether dir holds a log of kind Bolt.
func boltExists(fsys vfs.FS, dir string) (bool, error) {
	return vfs.Exists(fsys, filepath.Join(dir, boltFileName))
}
