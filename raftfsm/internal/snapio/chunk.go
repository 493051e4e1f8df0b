package snapio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A snapshot is written in chunks. Each chunk has a checksum, so that a reader can
// locate damage. The end mark distinguishes a complete stream from a truncated one:
//
//	chunk = size:4 crc:4 data       size 0: the end
//
// The CRC32C covers the chunk's number and its data.

const (
	chunkHeaderSize = 8
	chunkSize       = 64 << 10
)

var errChunkCut = errors.New("snapshot ends early")

// chunkSum returns the checksum of chunk number n.
func chunkSum(n uint32, data []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // MakeTable builds the table only once
	return crc32.Update(crc32.Checksum(binary.BigEndian.AppendUint32(nil, n), table), table, data)
}

// Writer splits its input into chunks.
type Writer struct {
	w   io.Writer
	n   uint32
	buf []byte
}

// NewWriter returns a writer of chunks to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, buf: make([]byte, chunkHeaderSize, chunkHeaderSize+chunkSize)}
}

// Write implements io.Writer.
func (c *Writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), cap(c.buf)-len(c.buf))
		c.buf = append(c.buf, p[:k]...)
		p = p[k:]
		if len(c.buf) == cap(c.buf) {
			if err := c.flush(); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

func (c *Writer) flush() error {
	data := c.buf[chunkHeaderSize:]
	binary.BigEndian.PutUint32(c.buf, uint32(len(data)))
	binary.BigEndian.PutUint32(c.buf[4:], chunkSum(c.n, data))
	_, err := c.w.Write(c.buf)
	c.n++
	c.buf = c.buf[:chunkHeaderSize]
	return err
}

// Close writes the buffered data and the end mark. It doesn't close the underlying
// writer.
func (c *Writer) Close() error {
	if len(c.buf) > chunkHeaderSize {
		if err := c.flush(); err != nil {
			return err
		}
	}
	return c.flush()
}

// Reader reads the output of a Writer. At the end mark it returns io.EOF.
type Reader struct {
	r    io.Reader
	n    uint32
	buf  []byte
	left []byte // unread part of buf
	err  error
}

// NewReader returns a reader of the chunks in r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Read implements io.Reader.
func (c *Reader) Read(p []byte) (int, error) {
	for len(c.left) == 0 {
		if c.err == nil {
			c.err = c.fill()
		}
		if c.err != nil {
			return 0, c.err
		}
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// fill reads the next chunk.
func (c *Reader) fill() error {
	var head [chunkHeaderSize]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return cut(err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > chunkSize {
		return fmt.Errorf("chunk %d of the snapshot claims %d bytes", c.n, size)
	}
	if c.buf == nil {
		c.buf = make([]byte, chunkSize)
	}
	data := c.buf[:size]
	if _, err := io.ReadFull(c.r, data); err != nil {
		return cut(err)
	}
	if binary.BigEndian.Uint32(head[4:]) != chunkSum(c.n, data) {
		return fmt.Errorf("chunk %d of the snapshot: checksum mismatch", c.n)
	}
	c.n++
	if size == 0 {
		return io.EOF
	}
	c.left = data
	return nil
}

func cut(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errChunkCut
	}
	return err
}

// End checks that everything up to the end mark has been read.
func (c *Reader) End() error {
	var b [1]byte
	switch _, err := c.Read(b[:]); err {
	case nil:
		return errors.New("unexpected data after the tree of the snapshot")
	case io.EOF:
		return nil
	default:
		return err
	}
}
