// Command release builds the files that we publish for a version: archives with the
// program, the wrappers, man pages and completions for every platform, Debian and RPM
// packages, an OCI image for every Linux processor with its contents (SPDX) and its origin
// (SLSA), the Helm chart, a CycloneDX list of the program's modules, the origin of all files,
// checksums, and signatures if the user supplies an OpenPGP key. It needs Go and Git, but no
// Docker.
//
// It is a separate module, so that zkgo doesn't depend on its dependencies.
//
// The same commit and the same version of Go give the same bytes on any machine: no file
// depends on the machine, the user, the directory or the time of the build.
// TestReproducible (tests/compat/operator/deploy) builds twice.
//
//	make release VERSION=v1.2.3                 # into ./dist
//	make release VERSION=v1.2.3 KEY=secret.asc  # signed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// platforms are the platforms that we test zkgo's build for.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// release is one run of the command.
type release struct {
	source, out, work string // directories: the repository, the result, scratch
	version, revision string
	at                time.Time // of the commit; every file gets this time
	platforms         []string
	built             map[string]string // the program of each platform that was built
	images            []platformImage
	chartTitle        string
	chartYAML         []byte
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("release", flag.ExitOnError)
	r := release{built: map[string]string{}}
	var at, list, key, passphrase string
	flags.StringVar(&r.source, "source", "../..", "the repository")
	flags.StringVar(&r.out, "out", "../../dist", "the output directory, which must not exist")
	flags.StringVar(&r.version, "version", "", "the version, e.g. v1.2.3 (default: the commit's tag, or 0.0.0-dev with the commit)")
	flags.StringVar(&r.revision, "revision", "", "the commit (default: HEAD)")
	flags.StringVar(&at, "time", "", "the time of the commit, RFC 3339 (default: HEAD's)")
	flags.StringVar(&list, "platforms", platforms, "what to build for")
	flags.StringVar(&key, "key", "", "a file with an OpenPGP private key that signs the checksums and the Helm chart")
	flags.StringVar(&passphrase, "passphrase-file", "", "a file with the key's passphrase")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r.platforms = strings.Split(list, ",")
	for _, dir := range []*string{&r.source, &r.out} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	if err := r.identify(ctx, at); err != nil {
		return err
	}
	var s *signer
	if key != "" { // before the work, because it fails if the key is wrong
		if s, err = newSigner(key, passphrase, r.at); err != nil {
			return err
		}
	}
	if r.work, err = os.MkdirTemp("", "zkgo-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := r.make(ctx); err != nil || s == nil {
		return err
	}
	return r.sign(s)
}

// identify fills in the fields that the command line doesn't set.
func (r *release) identify(ctx context.Context, at string) (err error) {
	dirty := ""
	if r.revision == "" {
		if r.revision, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
			return err
		}
		changes, err := r.git(ctx, "status", "--porcelain")
		switch {
		case err != nil:
			return err
		case changes != "" && r.version != "":
			return fmt.Errorf("%s has uncommitted changes, and a version is built from a commit. Commit them, or omit -version:\n%s", r.source, changes)
		case changes != "":
			dirty = ".dirty"
		case r.version != "":
			if err := r.described(); err != nil {
				return err
			}
		}
	}
	if at == "" {
		if at, err = r.git(ctx, "show", "-s", "--format=%cI", "HEAD"); err != nil {
			return err
		}
	}
	if r.at, err = time.Parse(time.RFC3339, at); err != nil {
		return err
	}
	r.at = r.at.UTC()
	if r.version == "" {
		if tag, err := r.git(ctx, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil && dirty == "" {
			r.version = tag
		} else {
			r.version = "0.0.0-dev." + r.at.Format("20060102150405") + ".g" + r.revision[:min(len(r.revision), 12)] + dirty
		}
	}
	r.version = strings.TrimPrefix(r.version, "v")
	if v, err := semver.StrictNewVersion(r.version); err != nil || v.Metadata() != "" {
		return fmt.Errorf("version %q: want a semantic version, e.g. v1.2.3 or v1.2.3-rc.1", r.version)
	}
	return nil
}

// described returns an error unless the changelog has a section about the version.
func (r *release) described() error {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	base, _, _ := strings.Cut(strings.TrimPrefix(r.version, "v"), "-")
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "##" && words[1] == base {
			return nil
		}
	}
	return fmt.Errorf("CHANGELOG.md has no section \"## %s\"", base)
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", r.source}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// make builds everything.
func (r *release) make(ctx context.Context) error {
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	if err := errors.Join(r.papers(ctx), r.documents()); err != nil {
		return err
	}
	for _, p := range r.platforms {
		goos, goarch, ok := strings.Cut(p, "/")
		if !ok {
			return fmt.Errorf("platform %q: want system/processor", p)
		}
		fmt.Println(p)
		bin, err := r.build(ctx, goos, goarch)
		if err != nil {
			return err
		}
		if err := r.archive(goos, goarch, bin); err != nil {
			return err
		}
		if err := r.sbom(goos, goarch, bin); err != nil {
			return err
		}
		if goos == "linux" {
			if err := errors.Join(r.packages(goarch, bin), r.addImage(goarch, bin)); err != nil {
				return err
			}
		}
	}
	for _, write := range []func() error{r.writeImages, r.chart, r.writeProvenance, r.checksums} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}
