//go:build linux

package deploy

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// The version that these tests release.
const (
	version  = "1.2.3"
	revision = "0123456789abcdef0123456789abcdef01234567"
	commit   = "2026-11-22T09:00:00Z"
)

// released is the release that several tests inspect.
var released struct {
	once sync.Once
	dir  string // below the directory that also has the keys
	err  error
}

// release makes a release for this machine's platform, once, signed with a new key. .ci/full
// makes it for all platforms.
func release(t *testing.T) string {
	t.Helper()
	released.once.Do(func() {
		dir, err := os.MkdirTemp("", "zkgo-release-test-")
		if err != nil {
			released.err = err
			return
		}
		released.dir = filepath.Join(dir, "dist")
		home := gnupg(t)
		output(t, keep(t, home, "--passphrase", "", "--quick-generate-key", "zkgo test <zkgo@example.com>", "ed25519", "sign", "never"))
		output(t, keep(t, home, "--output", signingKey(), "--armor", "--export-secret-keys"))
		output(t, keep(t, home, "--output", filepath.Join(dir, "public.asc"), "--armor", "--export"))
		released.err = makeRelease(t, root, released.dir, "022")
	})
	if released.err != nil {
		t.Fatal(released.err)
	}
	return released.dir
}

// signingKey is the path of the private key that signs the release.
func signingKey() string { return filepath.Join(filepath.Dir(released.dir), "secret.asc") }

// gnupg returns a new home directory for gpg.
func gnupg(t *testing.T) string {
	t.Helper()
	// Not t.TempDir: the path of the agent's socket must be short.
	home := must.Get(os.MkdirTemp("", "gpg-"))(t)
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	return home
}

// keep returns a call of gpg that asks nothing.
func keep(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, "gpg", append([]string{"--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback"}, args...)...)
}

func makeRelease(t *testing.T, source, out, umask string) error {
	platforms := os.Getenv("RELEASE_PLATFORMS")
	if platforms == "" {
		platforms = "linux/amd64"
	}
	// No time limit: on a busy machine, six platforms need half an hour.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "umask "+umask+` && exec "$@"`, "sh", "go", "run", "-C", filepath.Join(source, "deploy/release"), ".", "-out", out, "-platforms", platforms,
		"-version", "v"+version, "-revision", revision, "-time", commit, "-key", signingKey())
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return nil
}

// TestReproducible makes a second release from the same sources, in another directory, with
// another umask.
func TestReproducible(t *testing.T) {
	process.Needed(t)
	first := release(t)
	elsewhere := filepath.Join(t.TempDir(), "some", "where else")
	for _, name := range strings.Split(strings.TrimRight(output(t, command(t, "git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z")), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, but not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(elsewhere, name)
		must.Do(t, os.MkdirAll(filepath.Dir(to), 0o700))
		must.Do(t, os.WriteFile(to, b, 0o600))
	}
	second := filepath.Join(t.TempDir(), "dist")
	must.Do(t, makeRelease(t, elsewhere, second, "077"))
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS.asc"} {
		a := must.Get(os.ReadFile(filepath.Join(first, name)))(t)
		b := must.Get(os.ReadFile(filepath.Join(second, name)))(t)
		if !bytes.Equal(a, b) || bytes.Count(a, []byte("\n")) < 5 {
			t.Errorf("%s: the first time\n%sthe second time\n%s", name, a, b)
		}
	}
	check := command(t, "sha256sum", "-c", "--strict", "SHA256SUMS")
	check.Dir = second
	output(t, check)
}

// TestArchive unpacks the archive and runs its contents: the program, the wrappers, the list
// of modules.
func TestArchive(t *testing.T) {
	process.Needed(t)
	dist, dir := release(t), t.TempDir()
	output(t, command(t, "tar", "-xzf", filepath.Join(dist, "zkgo-1.2.3-linux-amd64.tar.gz"), "-C", dir))
	home := filepath.Join(dir, "zkgo-1.2.3-linux-amd64")
	if out := output(t, command(t, home+"/zkgo", "--version")); !strings.HasPrefix(out, "zkgo 1.2.3 (ZooKeeper 3.9.5) linux/amd64 go") || !strings.HasSuffix(out, ", commit 0123456789ab, 2026-11-22 09:00 UTC\n") {
		t.Errorf("version: %q", out)
	}
	if out := script(t, home, "version"); !strings.Contains(out, "zkgo 1.2.3, compatible with Apache ZooKeeper, version 3.9.5\n") {
		t.Errorf("zkServer.sh version: %q", out)
	}
	program := must.Get(elf.Open(home + "/zkgo"))(t)
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a loader: it is not static")
		}
	}
	for _, name := range []string{"LICENSE", "conf/zoo_sample.cfg", "docs/operate/quickstart.md", "README.md", "SECURITY.md", "CHANGELOG.md", "man/man1/zkgo-server.1", "man/man5/zoo.cfg.5",
		"completions/zkgo.bash", "completions/_zkgo", "completions/zkgo.fish", "bin/zkCli.sh", "grafana/zkgo.json", "prometheus/alerts.yml"} {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			t.Error(err)
		}
	}
	output(t, command(t, "bash", "-n", home+"/completions/zkgo.bash"))
	bom := must.Get(os.ReadFile(filepath.Join(dist, "zkgo-1.2.3-linux-amd64.cdx.json")))(t)
	var list struct {
		BomFormat, SpecVersion string
		Metadata               struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(bom, &list); err != nil || list.BomFormat != "CycloneDX" || list.Metadata.Component.Version != version {
		t.Fatalf("%v: %+v", err, list)
	}
	var have, want []string
	for _, c := range list.Components {
		if c.Name != "std" {
			have = append(have, c.Name+" "+c.Version)
		}
	}
	for line := range strings.Lines(output(t, command(t, "go", "version", "-m", home+"/zkgo"))) {
		if words := strings.Fields(line); words[0] == "dep" {
			want = append(want, words[1]+" "+words[2])
		}
	}
	if !slices.Equal(have, want) || len(want) < 10 {
		t.Errorf("the list has %q, the program %q", have, want)
	}
}

// TestSignatures verifies the signatures with gpg, as a user does, and after a change.
func TestSignatures(t *testing.T) {
	process.Needed(t)
	dist, home := release(t), gnupg(t)
	output(t, keep(t, home, "--import", filepath.Join(dist, "release-key.gpg")))
	sums := filepath.Join(dist, "SHA256SUMS")
	if out := output(t, keep(t, home, "--verify", sums+".asc", sums)); !strings.Contains(out, `Good signature from "zkgo test <zkgo@example.com>"`) {
		t.Errorf("gpg --verify: %s", out)
	}
	if _, err := os.Stat(filepath.Join(root, "deploy/helm/zookeeper/Chart.yaml")); err == nil {
		output(t, keep(t, home, "--verify", filepath.Join(dist, "zookeeper-1.2.3.tgz.prov")))
	}
	forged := filepath.Join(t.TempDir(), "SHA256SUMS")
	must.Do(t, os.WriteFile(forged, append(must.Get(os.ReadFile(sums))(t), "0123  more\n"...), 0o600))
	if out, err := keep(t, home, "--verify", sums+".asc", forged).CombinedOutput(); err == nil {
		t.Errorf("a forged list passes: %s", out)
	}
	for _, f := range must.Get(os.ReadDir(dist))(t) {
		if name := f.Name(); !strings.HasPrefix(name, "SHA256SUMS") && !strings.HasSuffix(name, ".prov") && name != "release-key.gpg" && !bytes.Contains(must.Get(os.ReadFile(sums))(t), []byte("  "+name+"\n")) {
			t.Errorf("SHA256SUMS doesn't have %s", name)
		}
	}
}

// TestDebianPackage installs, runs, updates, removes and purges the package, on a
// copy-on-write copy of this machine's files if the kernel allows us to make one.
func TestDebianPackage(t *testing.T) {
	process.Needed(t)
	rooted(t)
	deb := filepath.Join(release(t), "zkgo_1.2.3_amd64.deb")
	for line := range strings.Lines(output(t, command(t, "dpkg-deb", "-c", deb))) {
		words := strings.Fields(line)
		if words[1] != "root/root" || words[0][0] != 'l' && (words[0][8] == 'w' || words[0][5] == 'w') {
			t.Errorf("in the package: %s", line)
		}
	}
	script := must.Get(filepath.Abs("testdata/package.sh"))(t)
	args := []string{script, deb, fmt.Sprint(freePort(t))}
	name := "bash"
	if over := overlay(t); over != "" {
		args = append([]string{"-m", "bash", over, "bash"}, args...)
		name = "unshare"
	} else {
		t.Log("no copy of the machine: the package goes onto the machine itself")
	}
	out := output(t, command(t, name, args...))
	if !strings.HasSuffix(out, "all is well\n") {
		t.Errorf("the package:\n%s", out)
	}
}

// TestRPM: the RPM package is intact and has the files of the Debian package, except for the
// license, which has another place.
func TestRPM(t *testing.T) {
	process.Needed(t)
	dist, dir := release(t), t.TempDir()
	rpm := filepath.Join(dist, "zkgo-1.2.3-1.x86_64.rpm")
	output(t, command(t, "rpm", "-K", "--nosignature", rpm))
	output(t, command(t, "dpkg-deb", "-x", filepath.Join(dist, "zkgo_1.2.3_amd64.deb"), dir))
	have := map[string]bool{}
	for line := range strings.Lines(output(t, command(t, "rpm", "-qp", "--nosignature", "--qf", "[%{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES}\n]", rpm))) {
		words := strings.Fields(line)
		have[words[2]] = true
		if words[1] != "root:root" || words[0][0] == '-' && words[0] != "-rw-r--r--" && words[0] != "-rwxr-xr-x" || words[0][0] == 'd' && words[0] != "drwxr-xr-x" {
			t.Errorf("in the package: %s", line)
		}
	}
	must.Do(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		name := strings.Replace(strings.TrimPrefix(p, dir), "zsh/vendor-completions", "zsh/site-functions", 1) // where each system's zsh looks
		if err == nil && !d.IsDir() && !have[name] && name != "/usr/share/doc/zkgo/copyright" {
			t.Errorf("the RPM package has no %s", name)
		}
		return err
	}))
	if !have["/usr/share/licenses/zkgo/LICENSE"] || len(have) < 80 {
		t.Errorf("%d files: %v", len(have), have)
	}
}

// overlay returns a script that runs a command on a copy of the machine, or "" if the kernel
// or the container that we run in doesn't allow us to mount one.
func overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"upper", "work", "merged"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	path := filepath.Join(dir, "overlay.sh")
	write(t, path, "set -e", "cd "+dir,
		"mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work merged",
		"mount --bind /proc merged/proc", "mount --bind /dev merged/dev", `exec chroot merged "$@"`)
	// The kernel creates directories in it that RemoveAll has no permission for.
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
	})
	if exec.Command("unshare", "-m", "bash", path, "true").Run() != nil {
		return ""
	}
	return path
}
