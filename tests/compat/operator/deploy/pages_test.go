//go:build linux

package deploy

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// unpacked returns the directories with the pages of the archive and of the Debian package.
func unpacked(t *testing.T) map[string]string {
	t.Helper()
	dist, dir := release(t), t.TempDir()
	output(t, command(t, "tar", "-xzf", filepath.Join(dist, "zkgo-1.2.3-linux-amd64.tar.gz"), "-C", dir))
	output(t, command(t, "dpkg-deb", "-x", filepath.Join(dist, "zkgo_1.2.3_amd64.deb"), filepath.Join(dir, "deb")))
	return map[string]string{"archive": filepath.Join(dir, "zkgo-1.2.3-linux-amd64"), "deb": filepath.Join(dir, "deb/usr/share/doc/zkgo")}
}

// TestManPages renders every page: groff should have nothing to say.
func TestManPages(t *testing.T) {
	process.Needed(t)
	pages := must.Get(filepath.Glob(filepath.Join(unpacked(t)["archive"], "man/man?/*")))(t)
	if len(pages) < 28 {
		t.Fatalf("only %d pages", len(pages))
	}
	var warnings strings.Builder
	cmd := command(t, "man", append([]string{"--warnings", "-l"}, pages...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80")
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || warnings.Len() > 0 {
		t.Errorf("%v\n%s", err, &warnings)
	}
	for _, title := range []string{"\nNAME\n", "\nSEE ALSO\n"} {
		if n := strings.Count(string(out), title); n != len(pages) {
			t.Errorf("%d pages have a section %q, %d pages in all", n, title, len(pages))
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.1")
	write(t, bad, ".TH BAD 1", ".SH NAME", "bad \\- \\fQx", ".nosuchmacro")
	if out := output(t, command(t, "man", "--warnings", "-l", bad)); !strings.Contains(out, "warning") {
		t.Errorf("a page with mistakes gets no warning: %s", out)
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)[^()]*\)`)
	codeBlock    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// TestPackagedLinks follows every link of the packaged pages: one within the package to its
// file, one to the repository to the file here.
func TestPackagedLinks(t *testing.T) {
	process.Needed(t)
	for name, dir := range unpacked(t) {
		here, there := 0, 0
		pages := strings.Fields(output(t, exec.Command("find", dir, "-name", "*.md")))
		for _, page := range pages {
			text := codeBlock.ReplaceAllString(string(must.Get(os.ReadFile(page))(t)), "")
			for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
				u := must.Get(url.Parse(m[1]))(t)
				file := filepath.Join(filepath.Dir(page), u.Path)
				switch rest, ours := strings.CutPrefix(m[1], "https://github.com/zkgo/zkgo/"); {
				case ours:
					words := strings.SplitN(strings.TrimSuffix(rest, "#"+u.Fragment), "/", 3)
					if words[0] == "security" {
						continue // the form for reports
					}
					there++
					if len(words) != 3 || words[1] != "v1.2.3" {
						t.Errorf("%s: %s is not in this version", page, m[1])
						continue
					}
					file = filepath.Join(root, words[2])
				case u.Scheme != "":
					continue
				case u.Path == "":
					file = page
				default:
					here++
				}
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s: dead link %s: %v", page, m[1], err)
				}
			}
		}
		if len(pages) < 30 || here < 100 || there < 1 {
			t.Errorf("%s: %d pages, %d links within the package, %d to the repository", name, len(pages), here, there)
		}
	}
}
