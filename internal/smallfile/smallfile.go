// Package smallfile reads small files, e.g. a
// configuration, a key store, or a password. A path in a configuration can name anything, e.g.
// a device with endless data, so we limit the size.
//
// It imports the standard library only.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Max is the size in bytes of the largest file that Read accepts. It is far above the
// size of any configuration or key store.
const Max = 16 << 20

// ErrTooLarge is the cause when a file is larger than Max.
var ErrTooLarge = errors.New("larger than 16 MiB")

// Read returns the content of the file at path, which may be a pipe. It is safe for
// concurrent use.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFrom(path, f)
}

// ReadFrom returns what r has up to its end; name is used in the error.
func ReadFrom(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, Max+1))
	if err == nil && len(data) > Max {
		return nil, fmt.Errorf("%s: %w", name, ErrTooLarge)
	}
	return data, err
}
