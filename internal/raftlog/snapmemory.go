package raftlog

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// memorySnapshots keeps the newest snapshot in memory.
type memorySnapshots struct {
	mu    sync.Mutex
	count int
	meta  *raft.SnapshotMeta
	state []byte
}

var _ raft.SnapshotStore = (*memorySnapshots)(nil)

// Create implements raft.SnapshotStore.
func (m *memorySnapshots) Create(version raft.SnapshotVersion, index, term uint64,
	conf raft.Configuration, confIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count++
	return &memorySink{store: m, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf(snapIDPattern, term, index, m.count), Index: index, Term: term,
		Configuration: conf, ConfigurationIndex: confIndex,
	}}, nil
}

// List implements raft.SnapshotStore.
func (m *memorySnapshots) List() ([]*raft.SnapshotMeta, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.meta == nil {
		return nil, nil
	}
	meta := *m.meta
	return []*raft.SnapshotMeta{&meta}, nil
}

// Open implements raft.SnapshotStore.
func (m *memorySnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.meta == nil || m.meta.ID != id {
		return nil, nil, fmt.Errorf("snapshot %q does not exist", id)
	}
	meta := *m.meta
	return &meta, io.NopCloser(bytes.NewReader(m.state)), nil
}

func (m *memorySnapshots) covers(index uint64, all bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all || (m.meta != nil && m.meta.Index >= index) {
		return nil
	}
	return fmt.Errorf("no snapshot reaches index %d", index)
}

type memorySink struct {
	store *memorySnapshots
	meta  raft.SnapshotMeta
	buf   bytes.Buffer
	done  bool
}

func (k *memorySink) ID() string                  { return k.meta.ID }
func (k *memorySink) Write(b []byte) (int, error) { return k.buf.Write(b) }
func (k *memorySink) Cancel() error               { k.done = true; return nil }

func (k *memorySink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	k.meta.Size = int64(k.buf.Len())
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	k.store.meta, k.store.state = &k.meta, k.buf.Bytes()
	return nil
}
