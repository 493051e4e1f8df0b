package zkfiles

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
)

// Compression is the compression of a snapshot file. ZooKeeper determines it from the
// file name.
type Compression string

// ZooKeeper's compressions, with the names used in its setting
// snapshot.compression.method.
const (
	None   Compression = ""
	Gzip   Compression = "gz"
	Snappy Compression = "snappy"
)

// Extension returns the file name's extension: "", ".gz" or ".snappy".
func (c Compression) Extension() string {
	if c == None {
		return ""
	}
	return "." + string(c)
}

// wrap returns a writer that compresses to w. Its Close doesn't close w.
func (c Compression) wrap(w io.Writer) (io.WriteCloser, error) {
	switch c {
	case None:
		return nopCloser{w}, nil
	case Gzip:
		return gzip.NewWriter(w), nil
	case Snappy:
		return &snappyWriter{w: w}, nil
	}
	return nil, fmt.Errorf("compression %q: want gz, snappy or none", string(c))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// ZooKeeper writes snappy files with the library snappy-java: a header, then blocks,
// each prefixed with its length.
const (
	snappyMagic   = "\x82SNAPPY\x00"
	snappyVersion = "\x00\x00\x00\x01\x00\x00\x00\x01" // version of the format, and the lowest version that can read it
	snappyBlock   = 32 << 10                           // maximum uncompressed size of a block
	// maxSnappyBlock limits the size in a block's header. snappy-java itself allows
	// 512 MiB.
	maxSnappyBlock = 64 << 20
)

// decompressed returns the uncompressed content of a stream, regardless of the file
// name.
func decompressed(r io.Reader) (io.Reader, Compression, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(len(snappyMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, None, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		return z, Gzip, err
	case string(head) == snappyMagic:
		return &snappyReader{r: b}, Snappy, nil
	}
	return b, None, nil
}

// snappyReader reads snappy-java's stream format.
type snappyReader struct {
	r     io.Reader
	begun bool
	in    []byte
	out   []byte // a whole block
	rest  []byte // the unread part of the block
}

// Read implements io.Reader.
func (s *snappyReader) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next reads a block. It returns io.EOF if there is none.
func (s *snappyReader) next() error {
	if !s.begun {
		var head [len(snappyMagic) + len(snappyVersion)]byte
		if _, err := io.ReadFull(s.r, head[:]); err != nil {
			return fmt.Errorf("header of the snappy stream: %w", err)
		}
		s.begun = true
	}
	var size [4]byte
	if _, err := io.ReadFull(s.r, size[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return fmt.Errorf("length of a snappy block: %w", err)
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n > maxSnappyBlock {
		return fmt.Errorf("snappy block of %d bytes", n)
	}
	if cap(s.in) < n {
		s.in = make([]byte, n)
	}
	s.in = s.in[:n]
	if _, err := io.ReadFull(s.r, s.in); err != nil {
		return fmt.Errorf("snappy block of %d bytes: %w", n, err)
	}
	if full, err := s2.DecodedLen(s.in); err == nil && full > maxSnappyBlock {
		return fmt.Errorf("snappy block of %d bytes that contains %d", n, full)
	}
	out, err := s2.Decode(s.out[:cap(s.out)], s.in)
	if err != nil {
		return fmt.Errorf("snappy block: %w", err)
	}
	s.out, s.rest = out, out
	return nil
}

// snappyWriter writes snappy-java's stream format.
type snappyWriter struct {
	w     io.Writer
	begun bool
	in    []byte
	out   []byte
}

// Write implements io.Writer.
func (s *snappyWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), snappyBlock-len(s.in))
		s.in = append(s.in, p[:k]...)
		p = p[k:]
		if len(s.in) == snappyBlock {
			if err := s.block(); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

// Close flushes the remaining data. It doesn't close the underlying writer.
func (s *snappyWriter) Close() error { return s.block() }

func (s *snappyWriter) block() error {
	if !s.begun {
		s.begun = true
		if _, err := io.WriteString(s.w, snappyMagic+snappyVersion); err != nil {
			return err
		}
	}
	if len(s.in) == 0 {
		return nil
	}
	s.out = s2.EncodeSnappy(s.out[:cap(s.out)], s.in)
	s.in = s.in[:0]
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(s.out)))
	if _, err := s.w.Write(size[:]); err != nil {
		return err
	}
	_, err := s.w.Write(s.out)
	return err
}
