// Package boltlog keeps a Raft log in a bbolt database, for the store
// "bolt". Only programs that import it link bbolt: the Format belongs in the Bolt
// field of a server.Config.
//
// Invariants:
//
//   - Every change is one transaction, durable when the call returns.
//   - bbolt panics, partly in its own goroutines, when it reads a damaged page. We
//     therefore verify the whole file without bbolt in Open and Check (check.go). A file
//     that another process damages while it is open is out of scope.
//
// May import: hashicorp/raft, go-msgpack, bbolt; of this module only internal/vfs
// and storage.
package boltlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	msgpack "github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/storage"
)

// The buckets of the database and the only key of the second bucket. They are named as in
// hashicorp/raft-boltdb.
const (
	logsBucket = "logs" // big-endian index to entry
	confBucket = "conf"
	recordKey  = "zkgo"
)

// Format implements storage.Format.
type Format struct{}

var _ storage.Format = Format{}

// Open implements storage.Format.
func (Format) Open(fsys storage.FS, path string, rec []byte) (storage.Engine, error) {
	found, err := vfs.Exists(fsys, path)
	if err == nil && !found {
		err = create(fsys, path, rec)
	}
	if err != nil {
		return nil, err
	}
	if _, _, _, err := (Format{}).Check(fsys, path); err != nil {
		return nil, err
	}
	d, err := open(fsys, path)
	if err != nil {
		return nil, err // not d: a nil *database is not a nil Engine
	}
	return d, nil
}

// create creates the file atomically: under a temporary name, which is fsynced and
// renamed.
func create(fsys storage.FS, path string, rec []byte) error {
	tmp := path + ".tmp"
	if err := fsys.RemoveAll(tmp); err != nil {
		return err
	}
	d, err := open(fsys, tmp)
	if err != nil {
		return err
	}
	err = d.update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte(logsBucket)); err != nil {
			return err
		}
		conf, err := tx.CreateBucket([]byte(confBucket))
		if err != nil {
			return err
		}
		return conf.Put([]byte(recordKey), rec)
	})
	if err = errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	if err := vfs.SyncFile(fsys, tmp); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// database implements storage.Engine.
type database struct {
	db   *bbolt.DB
	fs   storage.FS
	path string
}

func open(fsys storage.FS, name string) (*database, error) {
	path, lazy, err := fsys.Database(name)
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path, 0o640, &bbolt.Options{
		Timeout: time.Second,
		// Open rebuilds the freelist. We don't write it with every transaction, because
		// it could be damaged.
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		PageSize:       pageSize,
		NoSync:         lazy,
		NoGrowSync:     lazy,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &database{db: db, fs: fsys, path: name}, nil
}

func (d *database) update(f func(tx *bbolt.Tx) error) error {
	return d.fs.Commit(d.path, func() error { return d.db.Update(f) })
}

func key(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// Range implements storage.Engine.
func (d *database) Range() (first, last uint64, err error) {
	err = d.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(logsBucket)).Cursor()
		if k, _ := c.First(); k != nil {
			first = binary.BigEndian.Uint64(k)
			k, _ = c.Last()
			last = binary.BigEndian.Uint64(k)
		}
		return nil
	})
	return first, last, err
}

// GetLog implements storage.Engine.
func (d *database) GetLog(index uint64, l *raft.Log) error {
	return d.db.View(func(tx *bbolt.Tx) error {
		val := tx.Bucket([]byte(logsBucket)).Get(key(index))
		if val == nil {
			return raft.ErrLogNotFound
		}
		if err := decode(val, l); err != nil {
			return fmt.Errorf("decoding: %w", err)
		}
		return nil
	})
}

// StoreLogs implements storage.Engine.
func (d *database) StoreLogs(logs []*raft.Log) error {
	return d.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(logsBucket))
		for _, l := range logs {
			var val []byte
			if err := msgpack.NewEncoderBytes(&val, &msgpack.MsgpackHandle{}).Encode(l); err != nil {
				return err
			}
			if err := b.Put(key(l.Index), val); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteRange implements storage.Engine.
func (d *database) DeleteRange(lo, hi uint64) error {
	return d.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(logsBucket))
		for i := lo; i <= hi; i++ {
			if err := b.Delete(key(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadRecord implements storage.Engine.
func (d *database) LoadRecord() (rec []byte, err error) {
	err = d.db.View(func(tx *bbolt.Tx) error {
		rec = bytes.Clone(tx.Bucket([]byte(confBucket)).Get([]byte(recordKey)))
		return nil
	})
	return rec, err
}

// SaveRecord implements storage.Engine.
func (d *database) SaveRecord(rec []byte) error {
	return d.update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(confBucket)).Put([]byte(recordKey), rec) })
}

// Where implements storage.Engine.
func (d *database) Where(uint64) string { return d.path }

// Close implements storage.Engine.
func (d *database) Close() error { return d.db.Close() }

// Check implements storage.Format. It expects one record and a log without gaps. It
// doesn't verify the entries themselves.
func (Format) Check(fsys storage.FS, path string) (rec []byte, first, last uint64, err error) {
	err = check(fsys, path, func(bucket string, key, val []byte) error {
		switch {
		case bucket == confBucket && string(key) == recordKey:
			rec = bytes.Clone(val)
		case bucket == logsBucket && len(key) == 8:
			index := binary.BigEndian.Uint64(key)
			if last != 0 && index != last+1 {
				return fmt.Errorf("log index %d follows %d", index, last)
			}
			if last = index; first == 0 {
				first = index
			}
		default:
			return fmt.Errorf("unknown key %q in bucket %q", key, bucket)
		}
		return nil
	})
	if err == nil && rec == nil {
		err = fmt.Errorf("%s is damaged: the record with term and vote is missing", path)
	}
	return rec, first, last, err
}

// Entries implements storage.Format.
func (Format) Entries(fsys storage.FS, path string, visit func(*raft.Log, error) error) error {
	return check(fsys, path, func(bucket string, _, val []byte) error {
		if bucket != logsBucket {
			return nil
		}
		l := new(raft.Log)
		return visit(l, decode(val, l))
	})
}

// decode decodes an entry.
func decode(b []byte, l *raft.Log) error {
	return msgpack.NewDecoderBytes(bytes.Clone(b), &msgpack.MsgpackHandle{}).Decode(l)
}

// Busy implements storage.Format.
func (Format) Busy(fsys storage.FS, name string) bool {
	path, _, err := fsys.Database(name)
	if err != nil {
		return false
	}
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: 10 * time.Millisecond})
	if err == nil {
		_ = db.Close() // nothing was written
	}
	return errors.Is(err, berrors.ErrTimeout)
}
