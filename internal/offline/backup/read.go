package backup

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Content is the contents of a backup or a snapshot.
type Content struct {
	Header   *Header // nil if the file isn't a backup
	Kind     Kind
	Tree     *tree.Tree
	Sessions *session.Table
	// Verified reports whether there was a digest of the state that matched.
	Verified bool
}

// Kind is the type of a file or a directory.
type Kind string

// The kinds that can be loaded.
const (
	KindBackup    Kind = "backup"
	KindZooKeeper Kind = "snapshot of ZooKeeper"
	KindZkgo      Kind = "snapshot of zkgo"
)

// Load verifies and loads a backup, a ZooKeeper snapshot file, or the directory of
// one zkgo snapshot.
func Load(path string) (*Content, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return loadZkgo(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(path, f, 0, zkfiles.Limits{})
}

// ReadState is Read for a state that a client has sent.
func ReadState(r io.Reader, policy tree.Policy, maxField int, room func() error) (*tree.Tree, *session.Table, error) {
	c, err := Read("the upload", r, policy, zkfiles.Limits{MaxField: maxField, Room: room})
	if err != nil {
		return nil, nil, err
	}
	return c.Tree, c.Sessions, nil
}

// Read verifies and loads a backup or a ZooKeeper snapshot from a stream. name is
// used in messages; only Emulate353TTL of p matters. l limits the resources.
func Read(name string, from io.Reader, p tree.Policy, l zkfiles.Limits) (*Content, error) {
	r := bufio.NewReaderSize(from, dataSize)
	start, err := r.Peek(len(magic))
	switch {
	case err == nil && string(start[:len(magic)-1]) == magic[:len(magic)-1]:
		return loadBackup(name, r, p, l)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(start) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	c := newContent(KindZooKeeper)
	info, err := zkfiles.ReadSnapshot(name, r, p, l, c.Tree, c.Sessions)
	c.Verified = info.Verified
	return c, err
}

func newContent(k Kind) *Content {
	return &Content{Kind: k, Tree: tree.New(), Sessions: session.NewTable()}
}

func loadZkgo(dir string) (*Content, error) {
	if _, err := os.Stat(filepath.Join(dir, "meta.json")); err != nil {
		return nil, fmt.Errorf("%s is a directory but not a snapshot: it has no meta.json", dir)
	}
	s, err := raftfsm.ReadSnapshot(dir)
	if err != nil {
		return nil, err
	}
	return &Content{Kind: KindZkgo, Tree: s.Tree, Sessions: s.Sessions, Verified: true}, nil
}

// loadBackup loads a backup. The snapshot in it is valid only after we have read everything
// up to the end mark.
func loadBackup(path string, r io.Reader, p tree.Policy, l zkfiles.Limits) (*Content, error) {
	c := newContent(KindBackup)
	h, err := open(r, func(h *Header, data io.Reader) error {
		info, err := zkfiles.ReadSnapshot("the snapshot in it", data, p, l, c.Tree, c.Sessions)
		c.Verified = info.Verified
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.Header = h
	return c, nil
}

// Extract writes the snapshot in a backup to w, byte for byte as the source sent it.
// The output is valid only if Extract returns no error.
func Extract(path string, w io.Writer) (*Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := open(bufio.NewReaderSize(f, dataSize), func(_ *Header, data io.Reader) error {
		_, err := io.Copy(w, data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// open reads a whole backup. take receives the snapshot.
func open(r io.Reader, take func(h *Header, data io.Reader) error) (*Header, error) {
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(r, start); err != nil || string(start[:len(magic)-1]) != magic[:len(magic)-1] {
		return nil, errors.New("not a backup")
	}
	if string(start) != magic {
		return nil, fmt.Errorf("a backup of format %q, only %q is known: it was written by another version", start[len(magic)-1:], magic[len(magic)-1:])
	}
	d := &dataReader{r: recordReader{r: r, off: int64(len(magic))}}
	typ, text, err := d.r.next()
	if err != nil {
		return nil, err
	}
	h := &Header{}
	if typ != typeHeader {
		return nil, fmt.Errorf("it begins with a record of type %q", typ)
	}
	if err := json.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	z, err := gzip.NewReader(d)
	if err != nil {
		return nil, d.instead(err)
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	counted := &counter{r: io.TeeReader(z, sum)}
	if err := take(h, counted); err != nil {
		return nil, d.instead(err)
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return nil, d.instead(err)
	}
	if _, err := io.Copy(io.Discard, d); err != nil {
		return nil, err
	}
	if want := (End{counted.n, sum.Sum32()}); d.end != want {
		return nil, fmt.Errorf("the snapshot in it has %d bytes with checksum %08x instead of %d with %08x", want.Bytes, want.Sum, d.end.Bytes, d.end.Sum)
	}
	return h, nil
}

// counter counts the bytes read.
type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// dataReader reads the data of a backup. It returns io.EOF only after a valid end.
type dataReader struct {
	r    recordReader
	left bytes.Reader
	end  End
	err  error
}

// instead returns the error in the file if that is the cause of err.
func (d *dataReader) instead(err error) error {
	if d.err != nil && d.err != io.EOF {
		return d.err
	}
	return err
}

// Read implements io.Reader.
func (d *dataReader) Read(p []byte) (int, error) {
	for d.left.Len() == 0 {
		if d.err == nil {
			d.err = d.fill()
		}
		if d.err != nil {
			return 0, d.err
		}
	}
	return d.left.Read(p)
}

func (d *dataReader) fill() error {
	typ, payload, err := d.r.next()
	switch {
	case err != nil:
		return err
	case typ == typeData:
		d.left.Reset(payload)
		return nil
	case typ != typeEnd:
		return d.r.fail(errors.New("a second header"))
	}
	if err := json.Unmarshal(payload, &d.end); err != nil {
		return d.r.fail(fmt.Errorf("end mark: %w", err))
	}
	if n, err := io.ReadFull(d.r.r, make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return d.r.fail(errors.New("unexpected data after the end mark"))
	}
	return io.EOF
}
