package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// buildFlags are the flags of every build, without the version.
var buildFlags = []string{"-trimpath", "-buildvcs=false"}

// build builds the program for one platform, once, and returns its path.
func (r *release) build(ctx context.Context, goos, goarch string) (string, error) {
	if path := r.built[goos+"/"+goarch]; path != "" {
		return path, nil
	}
	name := "zkgo"
	if goos == "windows" {
		name += ".exe"
	}
	path := filepath.Join(r.work, goos+"-"+goarch, name)
	stamp := r.version + " " + r.revision[:min(len(r.revision), 12)] + " " + r.at.Format(time.RFC3339)
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, buildFlags, []string{"-ldflags", "-s -w -buildid= -X 'github.com/zkgo/zkgo/internal/version.stamp=" + stamp + "'", "-o", path, "./cmd/zkgo"})...)
	cmd.Dir = r.source
	// The user's own Go settings must not affect the build.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s/%s: %w\n%s", goos, goarch, err, out)
	}
	r.built[goos+"/"+goarch] = path
	return path, nil
}

// shells maps each shell for which the program can write completions to the completion file's path.
var shells = map[string]string{"bash": "completions/zkgo.bash", "zsh": "completions/_zkgo", "fish": "completions/zkgo.fish", "powershell": "completions/zkgo.ps1"}

// papers runs the program, built for this machine, to write its man pages and completions.
func (r *release) papers(ctx context.Context) error {
	bin, err := r.build(ctx, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(r.work, dir), 0o755); err != nil {
			return err
		}
	}
	if out, err := exec.CommandContext(ctx, bin, "man", filepath.Join(r.work, "man")).CombinedOutput(); err != nil {
		return fmt.Errorf("man pages: %w\n%s", err, out)
	}
	for shell, path := range shells {
		text, err := exec.CommandContext(ctx, bin, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completions for %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(r.work, path), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
