package raftlog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"

	"github.com/zkgo/zkgo/internal/vfs"
)

const walMetaName = "meta.db"

// The one bucket and the one key of meta.db.
var (
	walMetaBucket = []byte("zkgo")
	walMetaKey    = []byte("state")
)

// walMeta is raft-wal's list of segments and Raft's term and vote, in one value of a
// bbolt database. Every transaction rewrites the value, with a transaction number and a
// checksum that reveal a damaged or outdated value.
type walMeta struct {
	fs    vfs.FS
	path  string
	files *segmentFiles
	// failed is called with errors, because raft-wal only logs those of a rotation.
	failed func(error)

	mu    turn
	db    *bbolt.DB
	state types.PersistentState
	rec   []byte
}

var _ types.MetaStore = (*walMeta)(nil)

func openWALMeta(dir string, files *segmentFiles, failed func(error)) (*walMeta, error) {
	m := &walMeta{mu: newTurn(), fs: files.fs, path: filepath.Join(dir, walMetaName), files: files, failed: failed}
	found, err := vfs.Exists(m.fs, m.path)
	if err == nil && !found {
		err = m.create(dir)
	}
	if err != nil {
		return nil, err
	}
	if err := m.load(); err != nil {
		return nil, err
	}
	m.db, err = openDatabase(m.fs, m.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.path, err)
	}
	return m, nil
}

// load reads the value and checks the whole database. It doesn't open the database or
// write to it.
func (m *walMeta) load() error {
	var value []byte
	txid, err := checkBolt(m.fs, m.path, func(bucket string, key, val []byte) error {
		if bucket != string(walMetaBucket) || string(key) != string(walMetaKey) {
			return fmt.Errorf("unknown key %q in bucket %q", key, bucket)
		}
		value = append([]byte(nil), val...)
		return nil
	})
	if err != nil {
		return err
	}
	if err := m.decode(value, txid); err != nil {
		return fmt.Errorf("%s is damaged: %w", m.path, err)
	}
	return nil
}

// create writes an empty state, unless there are segments: then the database was lost,
// and starting over would lose the segments.
func (m *walMeta) create(dir string) error {
	names, err := segmentNames(m.fs, dir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return errMetaMissing(m.path, names)
	}
	return createAtomic(m.fs, m.path, func(tmp string) error {
		db, err := openDatabase(m.fs, tmp)
		if err != nil {
			return err
		}
		return errors.Join(m.put(db, tmp, types.PersistentState{}, nil), db.Close())
	})
}

func errMetaMissing(path string, segments []string) error {
	return fmt.Errorf("%s is missing, but there are log segments: %s", path, segments[0])
}

// put writes the whole value in one transaction: transaction number, both parts with
// their lengths, CRC32C.
func (m *walMeta) put(db *bbolt.DB, path string, state types.PersistentState, rec []byte) error {
	list, err := json.Marshal(state)
	if err != nil {
		return err
	}
	update := func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(walMetaBucket)
		if err != nil {
			return err
		}
		v := binary.BigEndian.AppendUint64(nil, uint64(tx.ID()))
		v = binary.AppendUvarint(v, uint64(len(list)))
		v = append(v, list...)
		v = binary.AppendUvarint(v, uint64(len(rec)))
		v = append(v, rec...)
		return b.Put(walMetaKey, binary.BigEndian.AppendUint32(v, crc32.Checksum(v, castagnoli)))
	}
	return m.fs.Commit(path, func() error { return db.Update(update) })
}

func (m *walMeta) decode(v []byte, txid uint64) error {
	if len(v) < 8+4 || crc32.Checksum(v[:len(v)-4], castagnoli) != binary.BigEndian.Uint32(v[len(v)-4:]) {
		return errors.New("checksum mismatch in the list of segments")
	}
	if n := binary.BigEndian.Uint64(v); n != txid {
		return fmt.Errorf("the list of segments is of transaction %d, the last one was %d", n, txid)
	}
	list, rest, ok := cutBytes(v[8 : len(v)-4])
	if !ok {
		return errors.New("list of segments cut short")
	}
	rec, _, ok := cutBytes(rest)
	if !ok {
		return errBadRecord
	}
	if len(rec) > 0 {
		m.rec = append([]byte(nil), rec...)
	}
	return json.Unmarshal(list, &m.state)
}

// segments returns the list on disk.
func (m *walMeta) segments() []types.SegmentInfo { return m.state.Segments }

// Load implements types.MetaStore.
func (m *walMeta) Load(string) (types.PersistentState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state
	s.Segments = append([]types.SegmentInfo(nil), s.Segments...)
	for i := range s.Segments {
		// raft-wal marks every segment with its own codec's id, but requires the id of
		// the configured codec when it opens the segment.
		s.Segments[i].Codec = new(codec).ID()
	}
	return s, nil
}

// CommitState implements types.MetaStore. It creates the file of a new last segment
// before the list names it: a listed file that is missing was lost.
func (m *walMeta) CommitState(s types.PersistentState) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.files.prepare(s.Segments)
	if err == nil {
		err = m.put(m.db, m.path, s, m.rec)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", m.path, err)
		m.files.rotationFailed(err)
		m.failed(err)
		return err
	}
	m.state = s
	return nil
}

func (m *walMeta) record() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rec
}

func (m *walMeta) saveRecord(rec []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.put(m.db, m.path, m.state, rec); err != nil {
		return fmt.Errorf("%s: %w", m.path, err)
	}
	m.rec = rec
	return nil
}

var errStableUnused = errors.New("raft-wal's stable store is not used")

// GetStable implements types.MetaStore; it is never called.
func (m *walMeta) GetStable([]byte) ([]byte, error) { return nil, errStableUnused }

// SetStable implements types.MetaStore; it is never called.
func (m *walMeta) SetStable(_, _ []byte) error { return errStableUnused }

// Close implements types.MetaStore. raft-wal doesn't call it.
func (m *walMeta) Close() error { return m.close() }

func (m *walMeta) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.db == nil {
		return nil
	}
	err := m.db.Close()
	m.db = nil
	return err
}
