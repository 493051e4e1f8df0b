package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file in an archive.
type entry struct {
	name, from string
	mode       os.FileMode
}

// content returns the files of an archive, sorted by name.
func (r *release) content(goos, bin string) ([]entry, error) {
	all := []entry{{filepath.Base(bin), bin, 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		all = append(all, entry{name, filepath.Join(r.source, name), 0o644})
	}
	trees := map[string]string{"docs": filepath.Join(r.source, "docs"), "man": filepath.Join(r.work, "man"), "completions": filepath.Join(r.work, "completions")}
	if goos != "windows" {
		trees["bin"] = filepath.Join(r.source, "deploy/bin")
		trees["conf"] = filepath.Join(r.source, "deploy/conf")
	}
	for to, from := range trees {
		err := filepath.WalkDir(from, func(file string, f fs.DirEntry, err error) error {
			if err != nil || f.IsDir() || to == "docs" && !strings.HasSuffix(f.Name(), ".md") {
				return err
			}
			name, err := filepath.Rel(from, file)
			if err != nil {
				return err
			}
			mode := os.FileMode(0o644)
			if to == "bin" && f.Name() != "zkEnv.sh" {
				mode = 0o755
			}
			all = append(all, entry{to + "/" + filepath.ToSlash(name), file, mode})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// archive writes a .tar.gz, or a .zip for Windows.
func (r *release) archive(goos, goarch, bin string) (err error) {
	files, err := r.content(goos, bin)
	if err != nil {
		return err
	}
	base := fmt.Sprintf("zkgo-%s-%s-%s", r.version, goos, goarch)
	name, pack := base+".tar.gz", r.tar
	if goos == "windows" {
		name, pack = base+".zip", r.zip
	}
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return pack(f, base, files)
}

func (r *release) tar(w io.Writer, base string, files []entry) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, e := range files {
		info, err := os.Stat(e.from)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(base, e.name), Size: info.Size(), Mode: int64(e.mode), ModTime: r.at, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if err := pour(t, e.from); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func (r *release) zip(w io.Writer, base string, files []entry) error {
	z := zip.NewWriter(w)
	for _, e := range files {
		h := &zip.FileHeader{Name: path.Join(base, e.name), Method: zip.Deflate, Modified: r.at}
		h.SetMode(e.mode)
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if err := pour(f, e.from); err != nil {
			return err
		}
	}
	return z.Close()
}

// pour copies the file from to w.
func pour(w io.Writer, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// checksums writes SHA256SUMS in the format that sha256sum -c reads.
func (r *release) checksums() error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range files {
		h := sha256.New()
		if err := pour(h, filepath.Join(r.out, f.Name())); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), f.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
