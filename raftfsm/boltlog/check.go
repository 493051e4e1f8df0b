package boltlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/storage"
)

// This file reads bbolt's file format without bbolt. bbolt checks only its two meta pages,
// trusts every length and page number in the others, and panics or faults if they are
// wrong, partly in goroutines where no caller can recover. After our check it reads only
// valid pages.
//
// The check relies on two properties: keys and values are contiguous, in the order of the
// elements (bbolt never writes them otherwise), and both meta pages are valid and from
// consecutive transactions. If the newer meta page were damaged, bbolt would use the
// older one, and so lose a transaction that it had acknowledged. A crash can't leave a
// half-written meta page, because its 64 bytes are within one sector.

const (
	pageSize    = 4096 // passed to bbolt too, whatever the machine's page size
	magic       = 0xED0CDAED
	version     = 2
	pageHeader  = 16
	elementSize = 16
	metaSize    = 64

	branchPage = 0x01
	leafPage   = 0x02
	bucketElem = 0x01

	maxDepth = 64
)

// visitor is called for every key of a bucket, in order. Both slices are
// valid only during the call.
type visitor func(bucket string, key, value []byte) error

// checker walks one file.
type checker struct {
	f     io.ReaderAt
	pages uint64 // in use, according to the meta page
	seen  map[uint64]bool
	visit visitor
}

// check verifies the structure of the database at path and visits all keys.
func check(fsys storage.FS, path string, visit visitor) error {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	c := &checker{f: f, seen: map[uint64]bool{}, visit: visit}
	root, err := c.meta(f)
	if err == nil {
		err = c.page(root, c.bucket, bounds{}, 0)
	}
	if err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// meta checks the meta pages and returns the root page of the newer meta page.
func (c *checker) meta(f vfs.File) (root uint64, err error) {
	var tx, roots, pages [2]uint64
	for i := range tx {
		var b [pageHeader + metaSize]byte
		if _, err := f.ReadAt(b[:], int64(i)*pageSize); err != nil {
			return 0, fmt.Errorf("meta page %d: %w", i, err)
		}
		m := b[pageHeader:]
		sum := fnv.New64a()
		sum.Write(m[:56])
		ne := binary.NativeEndian
		switch {
		case ne.Uint64(m[56:]) != sum.Sum64(), ne.Uint32(m) != magic:
			return 0, fmt.Errorf("meta page %d: checksum mismatch", i)
		case ne.Uint32(m[4:]) != version, ne.Uint32(m[8:]) != pageSize:
			return 0, fmt.Errorf("meta page %d: version %d with pages of %d bytes is not ours", i, ne.Uint32(m[4:]), ne.Uint32(m[8:]))
		}
		roots[i], pages[i], tx[i] = ne.Uint64(m[16:]), ne.Uint64(m[40:]), ne.Uint64(m[48:])
		if tx[i]%2 != uint64(i) {
			return 0, fmt.Errorf("meta page %d holds transaction %d", i, tx[i])
		}
	}
	n := 0
	if tx[1] > tx[0] {
		n = 1
	}
	if tx[n] != tx[1-n]+1 {
		return 0, fmt.Errorf("meta pages of transactions %d and %d", tx[0], tx[1])
	}
	c.pages = pages[n]
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if c.pages > uint64(st.Size())/pageSize {
		return 0, fmt.Errorf("%d pages in use, but the file ends after %d bytes", c.pages, st.Size())
	}
	return roots[n], nil
}

// bounds is the range of keys in a subtree: from lo up to but not including hi.
type bounds struct{ lo, hi []byte }

type elemFunc func(flags uint32, key, val []byte) error

// bucket checks the contents of an element of the root bucket.
func (c *checker) bucket(flags uint32, name, val []byte) error {
	if flags != bucketElem || len(val) < 16 {
		return fmt.Errorf("%q is not a bucket", name)
	}
	visit := func(flags uint32, key, val []byte) error {
		if flags != 0 {
			return fmt.Errorf("bucket %s: key %x has flags %x", name, key, flags)
		}
		return c.visit(string(name), key, val)
	}
	root := binary.NativeEndian.Uint64(val)
	if root != 0 {
		if len(val) != 16 {
			return fmt.Errorf("bucket %s: both a page and inline", name)
		}
		return c.page(root, visit, bounds{}, 0)
	}
	if len(val) < 16+pageHeader || binary.NativeEndian.Uint16(val[16+8:]) != leafPage {
		return fmt.Errorf("bucket %s: inline page is not a leaf", name)
	}
	if err := c.elements(val[16:], visit, bounds{}, 0); err != nil {
		return fmt.Errorf("bucket %s: %w", name, err)
	}
	return nil
}

// page checks a page and everything below it.
func (c *checker) page(id uint64, visit elemFunc, b bounds, depth int) error {
	switch {
	case id < 2 || id >= c.pages:
		return fmt.Errorf("page %d is outside of the %d pages in use", id, c.pages)
	case depth > maxDepth:
		return fmt.Errorf("page %d: tree deeper than %d", id, maxDepth)
	}
	var head [pageHeader]byte
	if _, err := c.f.ReadAt(head[:], int64(id)*pageSize); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	ne := binary.NativeEndian
	overflow := uint64(ne.Uint32(head[12:]))
	if ne.Uint64(head[:]) != id || id+overflow >= c.pages {
		return fmt.Errorf("page %d: claims to be page %d with %d more", id, ne.Uint64(head[:]), overflow)
	}
	for p := id; p <= id+overflow; p++ {
		if c.seen[p] {
			return fmt.Errorf("page %d is used twice", p)
		}
		c.seen[p] = true
	}
	buf := make([]byte, (overflow+1)*pageSize)
	if _, err := c.f.ReadAt(buf, int64(id)*pageSize); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if err := c.elements(buf, visit, b, depth); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

var errLayout = errors.New("elements do not follow one another")

// elements checks the elements of a page, and the pages below a branch.
func (c *checker) elements(page []byte, visit elemFunc, b bounds, depth int) error {
	ne := binary.NativeEndian
	flags, count := ne.Uint16(page[8:]), int(ne.Uint16(page[10:]))
	if flags != branchPage && flags != leafPage {
		return fmt.Errorf("neither a branch nor a leaf: flags %x", flags)
	}
	branch := flags == branchPage
	if branch && count == 0 {
		return errors.New("branch without elements")
	}
	off := pageHeader + count*elementSize
	var prev []byte
	type child struct {
		id  uint64
		key []byte
	}
	var children []child
	for i := range count {
		at := pageHeader + i*elementSize
		if at+elementSize > len(page) {
			return errLayout
		}
		e := page[at:]
		var elemFlags, pos, ksize, vsize uint32
		if branch {
			pos, ksize = ne.Uint32(e), ne.Uint32(e[4:])
		} else {
			elemFlags, pos, ksize, vsize = ne.Uint32(e), ne.Uint32(e[4:]), ne.Uint32(e[8:]), ne.Uint32(e[12:])
		}
		end := off + int(ksize) + int(vsize)
		if at+int(pos) != off || end > len(page) {
			return errLayout
		}
		key, val := page[off:off+int(ksize)], page[off+int(ksize):end]
		off = end
		switch {
		case len(key) == 0,
			i > 0 && bytes.Compare(prev, key) >= 0,
			b.lo != nil && bytes.Compare(key, b.lo) < 0,
			b.hi != nil && bytes.Compare(key, b.hi) >= 0:
			return fmt.Errorf("key %x is out of order", key)
		}
		prev = key
		if branch {
			children = append(children, child{ne.Uint64(e[8:]), key})
		} else if err := visit(elemFlags, key, val); err != nil {
			return err
		}
	}
	for i, ch := range children {
		below := bounds{lo: ch.key, hi: b.hi}
		if i+1 < len(children) {
			below.hi = children[i+1].key
		}
		if err := c.page(ch.id, visit, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}
