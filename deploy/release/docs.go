package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// repository is where readers find the files that a package lacks.
const repository = "https://github.com/zkgo/zkgo"

// link matches the target of a Markdown link or image.
var link = regexp.MustCompile(`(\]\()([^()\s]+)([^()]*\))`)

// documents copies the documentation into the directory docs of the work directory. A link
// to a file that we don't ship becomes one to the repository at this commit. It is an error if
// the repository doesn't have the file, or a page doesn't have the heading.
func (r *release) documents() error {
	shipped, err := shippedDocuments(r.source)
	if err != nil {
		return err
	}
	var dead []error
	for _, name := range shipped {
		b, err := os.ReadFile(filepath.Join(r.source, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if path.Ext(name) == ".md" {
			text, err := r.relink(name, string(b), shipped)
			dead = append(dead, err)
			b = []byte(text)
		}
		to := filepath.Join(r.work, "docs", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(dead...)
}

// shippedDocuments returns the files to copy, as paths in the repository.
func shippedDocuments(source string) ([]string, error) {
	all := []string{"README.md", "CHANGELOG.md", "SECURITY.md"}
	err := filepath.WalkDir(filepath.Join(source, "docs"), func(file string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() || !slices.Contains([]string{".md", ".svg"}, path.Ext(f.Name())) {
			return err
		}
		name, err := filepath.Rel(source, file)
		all = append(all, filepath.ToSlash(name))
		return err
	})
	return all, err
}

// relink returns a page with links for its readers.
func (r *release) relink(page, text string, shipped []string) (string, error) {
	var dead []error
	lines, code := strings.SplitAfter(text, "\n"), false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code {
			continue
		}
		lines[i] = link.ReplaceAllStringFunc(line, func(s string) string {
			part := link.FindStringSubmatch(s)
			target, err := r.target(page, part[2], shipped)
			if err != nil {
				dead = append(dead, fmt.Errorf("%s:%d: %w", page, i+1, err))
			}
			return part[1] + target + part[3]
		})
	}
	return strings.Join(lines, ""), errors.Join(dead...)
}

// target returns the target that a page's link should have.
func (r *release) target(page, to string, shipped []string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" {
		return to, err
	}
	name := page
	if u.Path != "" {
		name = path.Join(path.Dir(page), u.Path)
	}
	info, err := os.Stat(filepath.Join(r.source, filepath.FromSlash(name)))
	if err != nil || strings.HasPrefix(name, "../") {
		return to, fmt.Errorf("dead link: %s", to)
	}
	if u.Fragment != "" && path.Ext(name) == ".md" {
		if err := heading(filepath.Join(r.source, filepath.FromSlash(name)), u.Fragment); err != nil {
			return to, err
		}
	}
	if slices.Contains(shipped, name) {
		return to, nil
	}
	kind := "/blob/"
	if info.IsDir() {
		kind = "/tree/"
	}
	absolute := repository + kind + r.ref() + "/" + name
	if u.Fragment != "" {
		absolute += "#" + u.Fragment
	}
	return absolute, nil
}

// ref returns the name of the released commit: its tag, or its hash if there is no release.
func (r *release) ref() string {
	if strings.Contains(r.version, "-dev.") {
		return r.revision
	}
	return "v" + r.version
}

// notInAnchor matches what GitHub leaves out of a heading's anchor.
var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// heading returns an error if a page has no heading with an anchor.
func heading(page, anchor string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	code := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if code || !strings.HasPrefix(line, "#") || !ok {
			continue
		}
		if strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-") == anchor {
			return nil
		}
	}
	return fmt.Errorf("dead link: %s has no heading #%s", filepath.Base(page), anchor)
}
