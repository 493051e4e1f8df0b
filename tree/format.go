package tree

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// A snapshot is a magic string followed by blocks. A block is the length of its
// payload, a CRC-32C (Castagnoli) and the payload; length and CRC are big-endian
// 32-bit integers. The CRC covers the payload and starts from the CRC of the
// previous block, so the reader detects a lost, repeated or moved block. A payload
// is a sequence of records, each a tag and jute fields:
//
//	header   zxid, number of nodes                          first
//	list     number (counted from 0), list                  before its first use
//	node     path, data, number of its list, the stat,
//	         kind, number of children                       in any order
//	trailer  number of nodes, ZooKeeper's digest, ours      last
//
// The reader reads no byte after the trailer's block, so a longer stream can
// contain a snapshot.
const (
	magic       = "zkgotre1" // the last character is the version
	blockHeader = 8
	blockTarget = 256 << 10 // a block is written when it has grown to this
	readStep    = 1 << 20   // most bytes to allocate before any have arrived
)

// The tags of the records.
const (
	tagHeader byte = iota + 1
	tagList
	tagNode
	tagTrailer
)

// castagnoli returns the table for the blocks' checksums.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// blockWriter writes blocks. Records are appended to buf.
type blockWriter struct {
	w   io.Writer
	buf []byte // the block's header and payload so far
	crc uint32
	n   int64
}

func newBlockWriter(w io.Writer) *blockWriter {
	return &blockWriter{w: w, buf: make([]byte, blockHeader, blockTarget+blockTarget/4)}
}

// flush writes the block if its payload is longer than limit.
func (b *blockWriter) flush(limit int) error {
	payload := b.buf[blockHeader:]
	if len(payload) <= limit {
		return nil
	}
	b.crc = crc32.Update(b.crc, castagnoli(), payload)
	binary.BigEndian.PutUint32(b.buf, uint32(len(payload)))
	binary.BigEndian.PutUint32(b.buf[4:], b.crc)
	err := b.write(b.buf)
	b.buf = b.buf[:blockHeader]
	return err
}

func (b *blockWriter) write(p []byte) error {
	n, err := b.w.Write(p)
	b.n += int64(n)
	return err
}

// blockReader reads blocks.
type blockReader struct {
	r      io.Reader
	buf    []byte
	crc    uint32
	number int
}

// next returns the next payload, valid until the next call.
func (b *blockReader) next() ([]byte, error) {
	b.number++
	var h [blockHeader]byte
	if _, err := io.ReadFull(b.r, h[:]); err != nil {
		return nil, b.fail(fmt.Errorf("reading its header: %w", noEOF(err)))
	}
	size := int(binary.BigEndian.Uint32(h[:]))
	b.buf = b.buf[:0]
	for len(b.buf) < size {
		have := len(b.buf)
		step := min(size-have, max(readStep, have))
		if cap(b.buf) < have+step {
			b.buf = append(make([]byte, 0, have+step), b.buf...)
		}
		b.buf = b.buf[:have+step]
		if _, err := io.ReadFull(b.r, b.buf[have:]); err != nil {
			return nil, b.fail(fmt.Errorf("reading its %d bytes: %w", size, noEOF(err)))
		}
	}
	return b.buf, b.verify(b.buf, binary.BigEndian.Uint32(h[4:]))
}

// verify checks a payload against its checksum.
func (b *blockReader) verify(payload []byte, want uint32) error {
	if b.crc = crc32.Update(b.crc, castagnoli(), payload); b.crc != want {
		return b.fail(fmt.Errorf("its checksum is %08x instead of %08x", b.crc, want))
	}
	return nil
}

// fail adds the number of the block to err.
func (b *blockReader) fail(err error) error { return failedBlock(b.number, err) }

func failedBlock(number int, err error) error {
	return fmt.Errorf("tree: snapshot block %d: %w", number, err)
}

// noEOF turns io.EOF into io.ErrUnexpectedEOF, so that callers don't mistake it for a clean
// end of the stream.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendNode appends the record of one node.
func appendNode(b []byte, s *arena.State, list uint32, kids int32) []byte {
	b = append(b, tagNode)
	b = proto.AppendString(b, s.Path())
	b = proto.AppendBuffer(b, s.Data())
	b = proto.AppendInt(b, int32(list))
	for _, v := range [...]int64{s.Czxid, s.Mzxid, s.Pzxid, s.Ctime, s.Mtime, s.Owner()} {
		b = proto.AppendLong(b, v)
	}
	for _, v := range [...]int32{s.Version, s.Cversion, s.Aversion} {
		b = proto.AppendInt(b, v)
	}
	b = append(b, byte(s.Kind()))
	return proto.AppendInt(b, kids)
}
