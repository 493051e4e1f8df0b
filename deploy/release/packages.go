package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers itself
)

// packages writes the packages of deploy/nfpm.yaml.
func (r *release) packages(goarch, bin string) error {
	if err := errors.Join(r.compressMan(), readable(filepath.Join(r.work, "man.gz")), readable(filepath.Join(r.work, "docs"))); err != nil {
		return err
	}
	values := map[string]string{"VERSION": r.version, "ARCH": goarch, "BIN": bin, "WORK": r.work, "DEPLOY": filepath.Join(r.source, "deploy"), "SOURCE": r.source}
	text, err := os.ReadFile(filepath.Join(r.source, "deploy/nfpm.yaml"))
	if err != nil {
		return err
	}
	config, err := nfpm.Parse(strings.NewReader(os.Expand(string(text), func(name string) string { return values[name] })))
	if err != nil {
		return fmt.Errorf("deploy/nfpm.yaml: %w", err)
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := r.pack(config, format); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

func (r *release) pack(config nfpm.Config, format string) (err error) {
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info.MTime = r.at
	info.RPM.BuildHost = "zkgo"
	info = nfpm.WithDefaults(info)
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return packager.Package(info, f)
}

// readable sets the modes that files and directories have in a package, whatever the umask.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(file string, f fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case f.IsDir():
			return os.Chmod(file, 0o755)
		}
		return os.Chmod(file, 0o644)
	})
}

// compressMan compresses the man pages, as distributions expect.
func (r *release) compressMan() error {
	pages, err := tree(filepath.Join(r.work, "man"))
	if err != nil || len(pages) == 0 {
		return errors.Join(err, errors.New("there are no man pages"))
	}
	for _, page := range pages {
		to := filepath.Join(r.work, "man.gz", page.name+".gz")
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := compress(page.from, to); err != nil {
			return err
		}
	}
	return nil
}

func compress(from, to string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(pour(z, from), z.Close())
}
