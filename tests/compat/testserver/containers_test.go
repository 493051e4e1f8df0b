package testserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestContainerExamples compiles the examples with Testcontainers. Running them takes Docker
// and the image; cmd/zkgo tests the arguments that they give to the container.
func TestContainerExamples(t *testing.T) {
	t.Parallel()
	if os.Getenv("ZKGO_CONTAINERS") != "1" {
		t.Skip("downloads Testcontainers for three languages; set ZKGO_CONTAINERS=1 (.ci/full does)")
	}
	for name, check := range map[string][][]string{
		"go":   {{"go", "vet", "./..."}},
		"java": {{"mvn", "-B", "-ntp", "-q", "test-compile"}},
		"python": {{"python3", "-m", "venv", "env"}, {"env/bin/pip", "install", "-q", "testcontainers==4.13.3", "kazoo==2.10.0", "pytest==8.4.2"},
			{"env/bin/python", "-m", "pytest", "-q", "--collect-only", "test_container.py"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir() // the tools write their output beside the sources
			must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("containers", name))))
			for _, c := range check {
				if out, err := command(t, dir, nil, c[0], c[1:]...); err != nil {
					t.Fatalf("%q: %v\n%s", c, err, out)
				}
			}
		})
	}
}
