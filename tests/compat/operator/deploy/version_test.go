//go:build linux

package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// TestVersionOfBuilds: every way to build from a checkout or from an archive of a commit shows
// the commit and its date.
func TestVersionOfBuilds(t *testing.T) {
	process.Needed(t)
	head := strings.TrimSpace(output(t, command(t, "git", "-C", root, "rev-parse", "HEAD")))[:12]
	show := command(t, "git", "-C", root, "show", "-s", "--date=format-local:%Y-%m-%d %H:%M UTC", "--format=%cd", "HEAD")
	show.Env = append(os.Environ(), "TZ=UTC")
	date := strings.TrimSpace(output(t, show))
	elsewhere, checkout, bin := t.TempDir(), filepath.Join(t.TempDir(), "checkout"), filepath.Join(t.TempDir(), "zkgo")
	output(t, command(t, "git", "clone", "--quiet", "--shared", root, checkout))
	output(t, command(t, "git", "-C", root, "archive", "--format=tar", "-o", elsewhere+".tar", "HEAD"))
	t.Cleanup(func() { _ = os.Remove(elsewhere + ".tar") })
	output(t, command(t, "tar", "-xf", elsewhere+".tar", "-C", elsewhere))
	for name, dir := range map[string]string{"go build in a checkout": checkout, "go build in an archive of the commit": elsewhere} {
		// With the flags of the other builds, so that they share the compiled packages.
		build := command(t, "go", "build", "-trimpath", "-buildvcs=auto", "-ldflags", "-s -w", "-o", bin, "./cmd/zkgo")
		build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		output(t, build)
		if out := output(t, command(t, bin, "--version")); !strings.Contains(out, ", commit "+head+", "+date+"\n") {
			t.Errorf("%s: %q, want commit %s, %s", name, out, head, date)
		}
	}
	must.Do(t, os.Remove(bin))
}
