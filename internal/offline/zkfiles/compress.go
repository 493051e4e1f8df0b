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

// Compression says how a snapshot file is compressed. ZooKeeper tells it by the
// name of the file.
type Compression string

// The compressions that ZooKeeper knows, as its setting
// snapshot.compression.method names them.
const (
	None   Compression = ""
	Gzip   Compression = "gz"
	Snappy Compression = "snappy"
)

// Extension returns how the name of the file ends: "", ".gz" or ".snappy".
func (c Compression) Extension() string {
	if c == None {
		return ""
	}
	return "." + string(c)
}

// wrap returns what compresses into w. Its Close does not close w.
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

// ZooKeeper's snappy files are written by the library snappy-java: a header,
// then blocks, each with its length before it.
const (
	snappyMagic   = "\x82SNAPPY\x00"
	snappyVersion = "\x00\x00\x00\x01\x00\x00\x00\x01" // of the format, and the least that can read it
	snappyBlock   = 32 << 10                           // what goes into one block
	// maxSnappyBlock bounds what a block says of itself: the other library's
	// largest is 512 MiB, and no data of a znode is split by being large.
	maxSnappyBlock = 64 << 20
)

// decompressed returns the content of a stream that may be compressed, whatever
// its name.
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

// snappyReader reads what snappy-java's stream has written.
type snappyReader struct {
	r     io.Reader
	begun bool
	in    []byte
	out   []byte // a whole block
	rest  []byte // of it
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

// next reads a block; io.EOF when there is none.
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
		return fmt.Errorf("snappy block of %d bytes that holds %d", n, full)
	}
	out, err := s2.Decode(s.out[:cap(s.out)], s.in)
	if err != nil {
		return fmt.Errorf("snappy block: %w", err)
	}
	s.out, s.rest = out, out
	return nil
}

// snappyWriter writes what snappy-java's stream reads.
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

// Close writes what is left; the stream below stays open.
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
