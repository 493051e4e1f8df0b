package backup

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/vfs"
)

// Write writes a backup of the snapshot read from r.
func Write(w io.Writer, h Header, r io.Reader) (End, error) {
	b := bufio.NewWriterSize(w, dataSize)
	var end End
	if _, err := b.WriteString(magic); err != nil {
		return end, err
	}
	records := &recordWriter{w: b}
	if err := records.text(typeHeader, h); err != nil {
		return end, err
	}
	data := &dataWriter{r: records}
	z := gzip.NewWriter(data)
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(io.MultiWriter(z, sum), r)
	if err != nil {
		return end, err
	}
	if err := z.Close(); err != nil {
		return end, err
	}
	if err := data.flush(); err != nil {
		return end, err
	}
	end = End{Bytes: n, Sum: sum.Sum32()}
	if err := records.text(typeEnd, end); err != nil {
		return end, err
	}
	return end, b.Flush()
}

// create writes the file path by calling write. We give the file its final name only after
// it is durable and accept returns no error. create doesn't replace files: the error for an
// existing file matches [os.ErrExist].
func create(path string, write func(io.Writer) error, accept func(tmp string) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, os.ErrExist)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+partial)
	if err != nil {
		return err
	}
	tmp := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(tmp)))
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := accept(tmp); err != nil {
		return err
	}
	return Rename(tmp, path)
}

// partial ends the name of a file that create is writing.
const partial = ".partial"

// Partial reports whether a file has the name of a backup that is being written, or that was
// interrupted.
func Partial(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, partial)
}

// Rename gives a file another name in the same file system. It doesn't replace files: the
// error for an existing file matches [os.ErrExist].
func Rename(from, to string) error {
	switch err := os.Link(from, to); { // unlike Rename, Link never replaces a file
	case err == nil:
		err = os.Remove(from)
		return errors.Join(err, vfs.OS{}.SyncDir(filepath.Dir(to)))
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%s: %w", to, os.ErrExist)
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s: %w", to, os.ErrExist)
	}
	if err := os.Rename(from, to); err != nil { // a file system without links
		return err
	}
	return vfs.OS{}.SyncDir(filepath.Dir(to))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// ExtractTo writes the snapshot in a backup to a directory as snapshot.<zxid> and
// returns its path. It creates the directory if necessary.
func ExtractTo(path, dir string) (string, error) {
	c, err := Load(path)
	if err != nil {
		return "", err
	}
	if c.Kind != KindBackup {
		return "", fmt.Errorf("%s is not a backup, but a %s", path, c.Kind)
	}
	if err := vfs.MkdirSynced(vfs.OS{}, dir); err != nil {
		return "", err
	}
	target := filepath.Join(dir, zkfiles.SnapshotName(c.Tree.LastZxid(), zkfiles.None))
	err = create(target, func(w io.Writer) error {
		_, err := Extract(path, w)
		return err
	}, func(string) error { return nil })
	return target, err
}
