package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

const module = "github.com/zkgo/zkgo"

// api has the public packages by import path.
type api map[string]*types.Package

// public reports whether semantic versioning covers a package.
func public(path string) bool {
	words := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
	return !slices.Contains(words, "internal") && !slices.Contains([]string{"cmd", "tests", "deploy", ".ci"}, words[0])
}

// load reads the API of the module in a directory.
func load(dir string) (api, error) {
	all, err := packages.Load(&packages.Config{Mode: packages.LoadTypes | packages.NeedName, Dir: dir}, "./...")
	if err != nil {
		return nil, err
	}
	found := api{}
	for _, p := range all {
		if !public(p.PkgPath) {
			continue
		}
		for _, e := range p.Errors {
			return nil, e
		}
		found[p.PkgPath] = p.Types
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no public packages in %s", dir)
	}
	return found, nil
}

// baseline returns the API of the last release, or the recorded one.
func baseline() (name string, a api, err error) {
	tag, err := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
	if err != nil {
		a, err = read(baselineFile)
		return baselineFile, a, err
	}
	dir, err := os.MkdirTemp("", "apidiff-")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "source.tar")
	if _, err := git("archive", "--format=tar", "-o", file, tag); err != nil {
		return "", nil, err
	}
	if out, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("tar: %w\n%s", err, out)
	}
	a, err = load(dir)
	return tag, a, err
}

func git(args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("git", append([]string{"-C", source}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// incompatible returns what breaks programs between the API and a later one.
func (a api) incompatible(later api) []string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(a)) {
		name := strings.TrimPrefix(path, module+"/")
		now, ok := later[path]
		if !ok {
			all = append(all, name+": the package is gone")
			continue
		}
		for _, c := range apidiff.Changes(a[path], now).Changes {
			if !c.Compatible {
				all = append(all, name+": "+strings.ReplaceAll(c.Message, "\n", " "))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// write records the API: a zip file with each package's export data.
func (a api) write(name string) error {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, path := range slices.Sorted(maps.Keys(a)) {
		w, err := z.Create(path)
		if err != nil {
			return err
		}
		if err := gcexportdata.Write(w, token.NewFileSet(), a[path]); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// read reads what write has written.
func read(name string) (api, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer z.Close()
	a, imports := api{}, map[string]*types.Package{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p, err := gcexportdata.Read(r, token.NewFileSet(), imports, f.Name)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, f.Name, err)
		}
		a[f.Name] = p
	}
	return a, nil
}
