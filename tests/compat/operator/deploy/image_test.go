//go:build linux

package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// Parts of the OCI image specification.
type (
	descriptor struct {
		MediaType, Digest string
		Platform          struct{ OS, Architecture string }
		Annotations       map[string]string
	}
	manifest struct {
		MediaType string
		Config    descriptor
		Manifests []descriptor
		Layers    []descriptor
	}
	imageConfig struct {
		Config struct {
			User, StopSignal     string
			Env, Entrypoint, Cmd []string
			Volumes              map[string]any
			ExposedPorts         map[string]any
			Labels               map[string]string
			Healthcheck          struct{ Test []string }
		}
	}
	statement struct {
		Type      string `json:"_type"`
		Predicate map[string]any
		Subject   []struct{ Digest map[string]string }
	}
)

// ociLayout is the directory of an unpacked image.
type ociLayout string

// blob returns a part of the image, after a check of its digest.
func (o ociLayout) blob(t *testing.T, digest string) []byte {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(string(o), "blobs", strings.ReplaceAll(digest, ":", "/"))))(t)
	if sum := sha256.Sum256(b); digest != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("%s has the digest %x", digest, sum)
	}
	return b
}

// manifest returns a manifest or an index.
func (o ociLayout) manifest(t *testing.T, digest string) manifest {
	t.Helper()
	return decode[manifest](t, o.blob(t, digest))
}

func decode[T any](t *testing.T, b []byte) (v T) {
	t.Helper()
	must.Do(t, json.Unmarshal(b, &v))
	return v
}

// layout unpacks the released image, and returns it with its index.
func layout(t *testing.T) (ociLayout, manifest) {
	t.Helper()
	dir := t.TempDir()
	output(t, command(t, "tar", "-xf", filepath.Join(release(t), "zkgo-1.2.3-image.tar"), "-C", dir))
	top := decode[manifest](t, must.Get(os.ReadFile(filepath.Join(dir, "index.json")))(t))
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("index.json: %+v", top)
	}
	o := ociLayout(dir)
	return o, o.manifest(t, top.Manifests[0].Digest)
}

// TestImage unpacks the image into a root directory, as a container runtime does, and runs it
// there as its own user with its own environment.
func TestImage(t *testing.T) {
	process.Needed(t)
	rooted(t)
	o, index := layout(t)
	m := o.manifest(t, find(t, index, "amd64").Digest)
	config := decode[imageConfig](t, o.blob(t, m.Config.Digest)).Config
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o755))
	for _, l := range m.Layers {
		o.blob(t, l.Digest)
		output(t, command(t, "tar", "--same-owner", "-xpzf", filepath.Join(string(o), "blobs", strings.ReplaceAll(l.Digest, ":", "/")), "-C", dir))
	}
	user, _, _ := strings.Cut(config.User, ":")
	if id, err := strconv.Atoi(user); err != nil || id != imageUser {
		t.Fatalf("the user is %q", config.User)
	}
	for name := range config.Volumes {
		info := must.Get(os.Stat(filepath.Join(dir, name)))(t)
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != imageUser {
			t.Errorf("%s belongs to user %d", name, owner)
		}
	}
	certs := must.Get(os.ReadFile(filepath.Join(dir, "etc/ssl/certs/ca-certificates.crt")))(t)
	if n := strings.Count(string(certs), "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("%d authorities", n)
	}
	port := freePort(t)
	env := append(slices.Clone(config.Env), "ZOO_ADMINSERVER_ENABLED=false", fmt.Sprintf("ZOO_SERVERS=server.1=localhost:1:2;127.0.0.1:%d", port))
	start := append(slices.Clone(config.Entrypoint), config.Cmd...)
	d := run(t, inside(t, dir, env, start[0], start[1:]...))
	serves(t, local(port))
	if out := output(t, inside(t, dir, env, config.Healthcheck.Test[1], config.Healthcheck.Test[2:]...)); out != "Mode: standalone\n" {
		t.Errorf("the health check: %q", out)
	}
	if out := output(t, inside(t, dir, env, "/bin/zkCli.sh", "-server", local(port), "ls", "/")); !strings.Contains(out, "[zookeeper]") {
		t.Errorf("zkCli.sh: %q", out)
	}
	if out := output(t, inside(t, dir, env, "/zkgo", "health", "--word", "srvr", "--server", local(port))); !strings.HasPrefix(out, "Zookeeper version: 3.9.5-zkgo1.2.3-0123456789ab, built on 2026-11-22 09:00 UTC\n") {
		t.Errorf("srvr: %q", out)
	}
	if err := d.Stop(syscall.Signal(15)); err != nil || config.StopSignal != "SIGTERM" {
		t.Errorf("after %s: %v", config.StopSignal, err)
	}
	for _, volume := range []string{"data", "datalog"} {
		if files := must.Get(os.ReadDir(filepath.Join(dir, volume)))(t); len(files) == 0 {
			t.Errorf("the server has written nothing into /%s", volume)
		}
	}
}

// find returns the image for a processor.
func find(t *testing.T, index manifest, arch string) descriptor {
	t.Helper()
	i := slices.IndexFunc(index.Manifests, func(d descriptor) bool { return d.Platform.OS == "linux" && d.Platform.Architecture == arch })
	if i < 0 {
		t.Fatalf("no image for %s: %+v", arch, index)
	}
	return index.Manifests[i]
}

// TestImageAttestations: each image has its contents and its origin, attached like BuildKit's.
func TestImageAttestations(t *testing.T) {
	process.Needed(t)
	o, index := layout(t)
	archs := []string{"amd64"}
	if strings.Contains(os.Getenv("RELEASE_PLATFORMS"), "linux/arm64") {
		archs = append(archs, "arm64")
	}
	if len(index.Manifests) != 2*len(archs) {
		t.Errorf("%d manifests for %q", len(index.Manifests), archs)
	}
	for _, arch := range archs {
		image := find(t, index, arch)
		i := slices.IndexFunc(index.Manifests, func(d descriptor) bool { return d.Annotations["vnd.docker.reference.digest"] == image.Digest })
		if i < 0 {
			t.Fatalf("%s: no attestation: %+v", arch, index)
		}
		about := index.Manifests[i]
		if about.Platform.OS != "unknown" || about.Annotations["vnd.docker.reference.type"] != "attestation-manifest" {
			t.Errorf("%s: %+v", arch, about)
		}
		found := map[string]statement{}
		for _, l := range o.manifest(t, about.Digest).Layers {
			s := decode[statement](t, o.blob(t, l.Digest))
			found[l.Annotations["in-toto.io/predicate-type"]] = s
			if s.Type != "https://in-toto.io/Statement/v1" || len(s.Subject) != 1 || "sha256:"+s.Subject[0].Digest["sha256"] != image.Digest {
				t.Errorf("%s: the statement is about another image: %+v", arch, s.Subject)
			}
		}
		packages, _ := found["https://spdx.dev/Document"].Predicate["packages"].([]any)
		build, _ := found["https://slsa.dev/provenance/v1"].Predicate["buildDefinition"].(map[string]any)
		if len(found) != 2 || len(packages) < 12 || !strings.Contains(fmt.Sprint(build["resolvedDependencies"]), "gitCommit:"+revision) {
			t.Errorf("%s: %+v", arch, found)
		}
	}
}

// TestImageIsTheDockerfiles: docker build and make release give images that behave alike.
func TestImageIsTheDockerfiles(t *testing.T) {
	process.Needed(t)
	o, index := layout(t)
	m := o.manifest(t, find(t, index, "amd64").Digest)
	config := decode[imageConfig](t, o.blob(t, m.Config.Digest)).Config
	_, stage, _ := strings.Cut(string(must.Get(os.ReadFile(filepath.Join(root, "deploy/container/Dockerfile")))(t)), "\nFROM scratch\n")
	stage = strings.ReplaceAll(stage, "\\\n", "")
	for word, have := range map[string][]string{
		"USER": {config.User}, "STOPSIGNAL": {config.StopSignal}, "ENV": config.Env, "ENTRYPOINT": config.Entrypoint, "CMD": config.Cmd,
		"VOLUME": slices.Sorted(maps.Keys(config.Volumes)), "EXPOSE": slices.Sorted(maps.Keys(config.ExposedPorts)),
		"HEALTHCHECK": append([]string{"--interval=10s", "--timeout=6s", "--start-period=30s"}, config.Healthcheck.Test...),
	} {
		line := regexp.MustCompile(`(?m)^` + word + ` (.*)$`).FindStringSubmatch(stage)
		if line == nil {
			t.Errorf("the Dockerfile has no %s", word)
			continue
		}
		want := strings.Fields(strings.NewReplacer("[", " ", "]", " ", `"`, " ", ",", " ").Replace(line[1]))
		sorted := slices.Clone(want)
		if word == "VOLUME" || word == "EXPOSE" {
			slices.Sort(sorted)
		}
		if !slices.Equal(have, sorted) {
			t.Errorf("%s: the image has %q, the Dockerfile %q", word, have, want)
		}
	}
}
