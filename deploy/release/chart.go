package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// chartDir has the Helm chart.
const chartDir = "deploy/helm/zookeeper"

// Lines of Chart.yaml: the chart's name, and the lines that a release replaces.
var (
	chartTitle   = regexp.MustCompile(`(?m)^name: *(\S+) *$`)
	chartVersion = regexp.MustCompile(`(?m)^version:.*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion:.*$`)
)

// chart packages the Helm chart as helm package does, but with the release's version and
// without the time of the build.
func (r *release) chart() error {
	dir := filepath.Join(r.source, chartDir)
	text, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // this version has none
	}
	if err != nil {
		return err
	}
	for _, line := range []*regexp.Regexp{chartTitle, chartVersion, appVersion} {
		if len(line.FindAll(text, -1)) != 1 {
			return fmt.Errorf("%s/Chart.yaml: want one line %v", chartDir, line)
		}
	}
	r.chartTitle = string(chartTitle.FindSubmatch(text)[1])
	text = chartVersion.ReplaceAll(text, []byte("version: "+r.version))
	r.chartYAML = appVersion.ReplaceAll(text, []byte(`appVersion: "`+r.version+`"`))
	meta := filepath.Join(r.work, "Chart.yaml")
	if err := os.WriteFile(meta, r.chartYAML, 0o644); err != nil {
		return err
	}
	files, err := tree(dir)
	if err != nil {
		return err
	}
	ignored, err := ignoredByHelm(filepath.Join(dir, ".helmignore"))
	if err != nil {
		return err
	}
	return r.writeChart(files, meta, ignored)
}

func (r *release) writeChart(files []entry, meta string, ignored func(string) bool) (err error) {
	f, err := os.Create(filepath.Join(r.out, r.chartName()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	for _, e := range files {
		switch {
		case e.name == "Chart.yaml":
			e.from = meta
		case ignored(e.name):
			continue
		}
		if err := r.add(t, e, path.Join(r.chartTitle, e.name)); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func (r *release) chartName() string { return r.chartTitle + "-" + r.version + ".tgz" }

// ignoredByHelm returns a function that reports whether the patterns of a .helmignore exclude
// a file: a pattern matches the path, or any of its elements.
func ignoredByHelm(file string) (func(name string) bool, error) {
	var patterns []string
	f, err := os.Open(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			p := strings.TrimSuffix(strings.TrimSpace(lines.Text()), "/")
			if p == "" || p[0] == '#' {
				continue
			}
			if _, err := path.Match(p, ""); err != nil || p[0] == '!' {
				return nil, fmt.Errorf("%s: %q is not supported", file, p)
			}
			patterns = append(patterns, strings.TrimPrefix(p, "/"))
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return func(name string) bool {
		for ; name != "."; name = path.Dir(name) {
			for _, p := range patterns {
				if match(p, name) || !strings.Contains(p, "/") && match(p, path.Base(name)) {
					return true
				}
			}
		}
		return false
	}, nil
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
