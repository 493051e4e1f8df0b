package client

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// Compression compresses data before it is stored, and decompresses stored data. It
// must be safe for concurrent use. Decompress must not return more than limit bytes.
type Compression interface {
	Compress(data []byte) ([]byte, error)
	Decompress(stored []byte, limit int) ([]byte, error)
}

// Gzip is the [Compression] that Curator uses.
func Gzip() Compression { return gzipCompression{} }

type gzipCompression struct{}

// Compress implements [Compression].
func (gzipCompression) Compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decompress implements [Compression].
func (gzipCompression) Decompress(stored []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("they have more than %d bytes", limit)
	}
	return data, err
}

// decompress decompresses data read with [Compressed]. We leave empty data alone: it comes
// from a znode that was created without data, e.g. by CreateParents.
func (c *config) decompress(stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return stored, nil
	}

	data, err := c.compression.Decompress(stored, c.maxReply)
	if err != nil {
		return nil, fmt.Errorf("the data cannot be decompressed: %w", err)
	}
	return data, nil
}
