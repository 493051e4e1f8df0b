package testserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// The image that the examples name, and the version that we run them with: a test doesn't
// replace an image that its machine may have.
const (
	exampleImage = "zkgo/zkgo:0.1.0"
	testVersion  = "0.0.0-test"
)

// TestContainerExamples compiles the examples with Testcontainers. It then builds the image like a
// release, and runs the examples in it if there is a Docker API: Docker's, the one in DOCKER_HOST,
// or podman's.
func TestContainerExamples(t *testing.T) {
	t.Parallel()
	if os.Getenv("ZKGO_CONTAINERS") != "1" {
		t.Skip("downloads Testcontainers for three languages; set ZKGO_CONTAINERS=1 (.ci/full does)")
	}
	examples := map[string]struct {
		check [][]string
		run   []string
		want  string
	}{
		"go":   {[][]string{{"go", "vet", "./..."}}, []string{"go", "test", "-count=1", "-v", "./..."}, "--- PASS: TestWorkerExpires"},
		"java": {[][]string{{"mvn", "-B", "-ntp", "-q", "test-compile"}}, []string{"mvn", "-B", "-ntp", "test"}, "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0"},
		"python": {[][]string{{"python3", "-m", "venv", "env"}, {"env/bin/pip", "install", "-q", "testcontainers==4.13.3", "kazoo==2.10.0", "pytest==8.4.2"},
			{"env/bin/python", "-m", "pytest", "-q", "--collect-only", "test_container.py"}}, []string{"env/bin/python", "-m", "pytest", "-q", "test_container.py"}, "1 passed"},
	}
	dirs := map[string]string{}
	for name, example := range examples {
		dirs[name] = t.TempDir() // the tools write their output beside the sources
		must.Do(t, os.CopyFS(dirs[name], os.DirFS(filepath.Join("containers", name))))
		for _, c := range example.check {
			if out, err := command(t, dirs[name], nil, c[0], c[1:]...); err != nil {
				t.Fatalf("%s: %q: %v\n%s", name, c, err, out)
			}
		}
	}

	host, api := dockerAPI(t)
	if api == nil {
		t.Skip("the examples compile, but nothing runs them here: no Docker API (DOCKER_HOST, /var/run/docker.sock), and no podman that serves one")
	}
	image := loadImage(t, api)
	env := []string{
		"DOCKER_HOST=" + host, "TESTCONTAINERS_RYUK_DISABLED=true", // its image is in a registry, and we remove our containers
		"TESTCONTAINERS_CONNECTION_MODE=docker_host", // podman's list of containers lacks what Python's library reads inside a container
	}
	for name, example := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			useImage(t, dirs[name], image)
			if out, err := command(t, dirs[name], env, example.run[0], example.run[1:]...); err != nil || !strings.Contains(out, example.want) {
				t.Errorf("%q: %v, want %q:\n%s", example.run, err, example.want, out)
			}
		})
	}
}

// dockerAPI returns the address of a Docker API and a client for it, or nil if there is none.
// It starts podman's if no other is running.
func dockerAPI(t *testing.T) (host string, api *http.Client) {
	t.Helper()
	for _, host := range []string{os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock"} {
		if api := dial(host); api != nil && ping(t.Context(), api) {
			return host, api
		}
	}
	podman, err := exec.LookPath("podman")
	if err != nil {
		return "", nil
	}
	dir := must.Get(os.MkdirTemp("", "podman-"))(t) // not t.TempDir: the path of a socket has to be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	host = "unix://" + filepath.Join(dir, "api.sock")
	args := []string{"system", "service", "--time=0", host}
	if runc, err := exec.LookPath("runc"); err == nil { // crun, podman's own choice, needs more of the kernel
		args = append([]string{"--runtime", runc}, args...)
	}
	service := exec.CommandContext(context.WithoutCancel(t.Context()), podman, args...)
	must.Do(t, service.Start())
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	api = dial(host)
	wait.Eventually(t, "podman serves a Docker API", func() bool { return ping(t.Context(), api) })
	return host, api
}

// dial returns a client for a Docker API on a Unix socket, or nil for another address.
func dial(host string) *http.Client {
	socket, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return nil
	}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
}

// ask sends a request to a Docker API and returns the reply's status and body.
func ask(ctx context.Context, api *http.Client, method, path string, body io.Reader) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, body)
	if err != nil {
		return 0, "", err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-tar")
	}
	resp, err := api.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// ping reports whether a Docker API answers.
func ping(ctx context.Context, api *http.Client) bool {
	status, _, err := ask(ctx, api, http.MethodGet, "/_ping", nil)
	return err == nil && status == http.StatusOK
}

// loadImage builds the image of a release for this machine, and loads it. It returns the
// image's name, and removes the image when the test is over.
func loadImage(t *testing.T, api *http.Client) string {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	source := must.Get(filepath.Abs("../../.."))(t)
	if out, err := command(t, source, nil, "go", "run", "-C", "deploy/release", ".", "-out", dist, "-platforms", "linux/"+runtime.GOARCH,
		"-version", "v"+testVersion, "-revision", strings.Repeat("0", 40), "-time", "2026-11-22T09:00:00Z"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := must.Get(os.ReadFile(filepath.Join(dist, "zkgo-"+testVersion+"-image.tar")))(t)
	status, text, err := ask(t.Context(), api, http.MethodPost, "/images/load", bytes.NewReader(file))
	name := "docker.io/zkgo/zkgo:" + testVersion
	if err != nil || status != http.StatusOK || !strings.Contains(text, testVersion) {
		t.Fatalf("the image can't be loaded (Docker before 25 can't): %d %v %s", status, err, text)
	}
	t.Cleanup(func() {
		_, _, _ = ask(context.WithoutCancel(t.Context()), api, http.MethodDelete, "/images/"+name+"?force=true", nil)
	})
	return name
}

// useImage replaces the image in all files of a directory's example.
func useImage(t *testing.T, dir, image string) {
	t.Helper()
	replaced := 0
	for _, pattern := range []string{"*_test.go", "test_*.py", "src/test/java/*.java"} {
		for _, name := range must.Get(filepath.Glob(filepath.Join(dir, pattern)))(t) {
			text := string(must.Get(os.ReadFile(name))(t))
			replaced += strings.Count(text, exampleImage)
			must.Do(t, os.WriteFile(name, []byte(strings.ReplaceAll(text, exampleImage, image)), 0o600))
		}
	}
	if replaced != 1 {
		t.Fatalf("the example names %s %d times, want once", exampleImage, replaced)
	}
}
