package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/zkgo/zkgo/tests/kit/lossyfs"
)

const (
	dbPage = 4096
	dbMeta = 2 // bbolt's first two pages are its meta pages
)

// databases contains the files of a volume that bbolt maps into memory. bbolt works on a real file.
// After each of its commits, the changed pages are written to the volume in the order in which
// bbolt would have synced them: first the pages of the tree, then, once these are durable, the meta
// page that makes them valid. A power cut may happen at any point in between.
type databases struct {
	dir  string
	turn chan struct{} // allows one commit at a time, like bbolt

	mu    sync.Mutex
	paths map[lossyfs.ID]string
	ever  int

	before, after []byte // buffers for content; for the goroutine that has turn
}

func newDatabases(dir string) *databases {
	return &databases{dir: dir, turn: make(chan struct{}, 1), paths: make(map[lossyfs.ID]string)}
}

// path returns the real file of a database. The first call copies the content
// from the volume.
func (b *databases) path(v *volume, id lossyfs.ID) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.paths[id]; ok {
		return p, nil
	}
	b.ever++
	p := filepath.Join(b.dir, fmt.Sprint(b.ever))
	if size := v.mem.Size(id); size > 0 {
		data := make([]byte, size)
		v.mem.ReadAt(id, data, 0)
		if err := os.WriteFile(p, data, 0o600); err != nil {
			return "", err
		}
	}
	b.paths[id] = p
	return p, nil
}

// known returns the real file of a database, or "" for any other file.
func (b *databases) known(id lossyfs.ID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paths[id]
}

// commit runs a transaction.
func (b *databases) commit(v *volume, id lossyfs.ID, name string, f func() error) error {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if errno := v.d.full(v); errno != 0 {
		return pathError("write", name, errno)
	}
	if err := f(); err != nil {
		return err
	}
	before, after, err := b.content(v, id)
	if err != nil {
		return err
	}
	meta := min(len(after), dbMeta*dbPage)
	for _, part := range [][2]int{{meta, len(after)}, {0, meta}} {
		if errno := b.write(v, id, before, after, part[0], part[1]); errno != 0 {
			return pathError("write", name, errno)
		}
		if errno := v.sync(lossyfs.Op{Kind: lossyfs.Fsync, Node: id}, true); errno != 0 {
			return pathError("fsync", name, errno)
		}
	}
	return nil
}

// pull copies what bbolt has written without a commit, e.g. when it created the
// file, to the volume.
func (b *databases) pull(v *volume, id lossyfs.ID) error {
	if b.known(id) == "" {
		return nil
	}
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	before, after, err := b.content(v, id)
	if err != nil {
		return err
	}
	return pathError("write", b.known(id), b.write(v, id, before, after, 0, len(after)))
}

// content returns the content on the volume and the content of the real file.
// Both are valid until the next call.
func (b *databases) content(v *volume, id lossyfs.ID) (before, after []byte, err error) {
	b.before = room(b.before, v.mem.Size(id))
	v.mem.ReadAt(id, b.before, 0)
	f, err := os.Open(b.known(id))
	if os.IsNotExist(err) {
		return b.before, nil, nil // bbolt has not opened it yet
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	b.after = room(b.after, st.Size())
	n, err := io.ReadFull(f, b.after)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return b.before, b.after[:n], err
}

// room returns b resized to n bytes, or a new slice if b is too small.
func room(b []byte, n int64) []byte {
	if int64(cap(b)) < n {
		return make([]byte, n, n+n/2)
	}
	return b[:n]
}

// write writes the pages between byte offsets lo and hi that differ.
func (b *databases) write(v *volume, id lossyfs.ID, before, after []byte, lo, hi int) syscall.Errno {
	for at := lo; at < hi; at += dbPage {
		end := min(at+dbPage, hi)
		if end <= len(before) && bytes.Equal(before[at:end], after[at:end]) {
			continue
		}
		op := lossyfs.Op{Kind: lossyfs.Write, Node: id, Off: int64(at), Data: after[at:end]}
		v.d.moment(v)
		if _, errno := v.mem.Do(op); errno != 0 {
			return errno
		}
	}
	v.d.moment(v)
	return 0
}
