package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait: even a loaded machine needs much less.
const Patience = 60 * time.Second

// build is the zkgo binary that this test binary has built.
type build struct {
	once sync.Once
	path string
	err  error
}

var built build //nolint:gochecknoglobals // one build serves all tests of a test binary

// Binary builds zkgo, once for all tests of a test binary, and returns its path.
// If ZKGO_BINARY names a binary, Binary returns that instead.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.path = os.Getenv("ZKGO_BINARY"); built.path != "" {
			return
		}
		dir, err := os.MkdirTemp("", "zkgo-test-")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "zkgo")
		built.err = Build(built.path)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// Build builds zkgo at a path.
func Build(path string) error {
	out, err := exec.Command("go", "build", "-o", path, "github.com/zkgo/zkgo/cmd/zkgo").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building zkgo: %w: %s", err, out)
	}
	return nil
}

// Root returns the directory of this module.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/zkgo/zkgo").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Needed skips a slow suite of real servers, unless ZKGO_REQUIRE=1 is set: "go test ./..." should
// be quick, so we run everything only in .ci/run.
func Needed(t testing.TB) {
	t.Helper()
	if os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("runs servers as processes for a while: ZKGO_REQUIRE=1")
	}
}

// Cleanup removes the binary that Binary built. TestMain should call it.
func Cleanup() {
	if built.path != "" && os.Getenv("ZKGO_BINARY") == "" {
		os.RemoveAll(filepath.Dir(built.path)) //nolint:errcheck // a leftover in the temp dir
	}
}

// Server is a running zkgo.
type Server struct {
	*Proc
	Addr string // for clients
}

// Start runs `zkgo server` with the given data directory on a free client port
// and returns when it listens. args are added to the command line.
func Start(t testing.TB, dataDir string, args ...string) *Server {
	t.Helper()
	s, err := Try(Binary(t), dataDir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Try is Start for a start that may fail: the error contains the server's output.
func Try(bin, dataDir string, args ...string) (*Server, error) {
	return Run(bin, append([]string{"server", "--data-dir", dataDir, "--client-port", "0",
		"--set", "clientPortAddress=127.0.0.1", "--set", "admin.enableServer=false"}, args...)...)
}

// clientAddr matches the line in which a server logs its client port.
var clientAddr = regexp.MustCompile(`listens for clients.* addresses="?(127\.0\.0\.1:\d+)`)

// errSilent means that a server has not yet logged its client port. A port that the test chose in
// advance could belong to another process by then.
var errSilent = errors.New("it has not logged its client port")

// Run runs zkgo with a command line that serves clients on 127.0.0.1, and returns
// when it listens. If it does not, the error contains its output.
func Run(bin string, args ...string) (*Server, error) {
	p, err := Launch(exec.Command(bin, args...), "")
	if err != nil {
		return nil, err
	}
	s := &Server{Proc: p}
	err = p.Await(Patience, "zkgo listens", func() error {
		found := clientAddr.FindStringSubmatch(p.Output())
		if found == nil {
			return errSilent
		}
		s.Addr = found[1]
		return nil
	})
	if err != nil {
		p.Kill()
	}
	return s, err
}

// Stop asks the server to end, as Ctrl-C does, and returns how it ended.
func (s *Server) Stop() error { return s.Proc.Stop(os.Interrupt) }
