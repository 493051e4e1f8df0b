package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
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
	all := []entry{{filepath.Base(bin), bin, 0o755}, {"LICENSE", filepath.Join(r.source, "LICENSE"), 0o644}}
	trees := map[string]string{
		"": filepath.Join(r.work, "docs"), "man": filepath.Join(r.work, "man"), "completions": filepath.Join(r.work, "completions"),
		"grafana": filepath.Join(r.source, "deploy/grafana"), "prometheus": filepath.Join(r.source, "deploy/prometheus"),
	}
	if goos != "windows" {
		trees["bin"] = filepath.Join(r.source, "deploy/bin")
		trees["conf"] = filepath.Join(r.source, "deploy/conf")
	}
	for to, from := range trees {
		files, err := tree(from)
		if err != nil {
			return nil, err
		}
		for _, e := range files {
			if e.name == "alerts_test.yml" {
				continue
			}
			if to == "bin" && e.name != "zkEnv.sh" {
				e.mode = 0o755
			}
			e.name = path.Join(to, e.name)
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// tree returns the files below a directory, sorted by their names relative to it.
func tree(dir string) ([]entry, error) {
	var all []entry
	err := filepath.WalkDir(dir, func(file string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		all = append(all, entry{filepath.ToSlash(name), file, 0o644})
		return err
	})
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, err
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
		if err := r.add(t, e, path.Join(base, e.name)); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// add adds a file to a tar file under a name.
func (r *release) add(t *tar.Writer, e entry, name string) error {
	info, err := os.Stat(e.from)
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(e.mode), ModTime: r.at, Format: tar.FormatUSTAR}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	return pour(t, e.from)
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
		sum, err := sha256File(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, f.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}

// sha256File returns the checksum of a file in hexadecimal.
func sha256File(name string) (string, error) {
	h := sha256.New()
	err := pour(h, name)
	return hex.EncodeToString(h.Sum(nil)), err
}
