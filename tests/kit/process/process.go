package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait: it is far longer than anything should take on a
// loaded machine.
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
		out, err := exec.Command("go", "build", "-o", built.path, "github.com/zkgo/zkgo/cmd/zkgo").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("build zkgo: %v", built.err)
	}
	return built.path
}

// Needed skips a suite of real servers that takes a while, unless ZKGO_REQUIRE=1
// asks for it: "go test ./..." should be quick, and .ci/run runs everything.
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
	Addr string // for clients
	cmd  *exec.Cmd
	out  *lockedBuffer
	done chan struct{}
	err  error // result of Wait, valid once done is closed
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

// Run runs zkgo with a command line that serves clients on 127.0.0.1, and returns
// when it listens. If it does not, the error contains its output.
func Run(bin string, args ...string) (*Server, error) {
	s := &Server{cmd: exec.Command(bin, args...), out: &lockedBuffer{}, done: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	return s, s.listening()
}

// clientAddr matches the line in which a server logs its client port.
var clientAddr = regexp.MustCompile(`listens for clients.* addresses="?(127\.0\.0\.1:\d+)`)

// listening waits until the server logs its address. A port that the test chose
// in advance could meanwhile belong to another process.
func (s *Server) listening() error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if found := clientAddr.FindStringSubmatch(s.out.String()); found != nil {
			s.Addr = found[1]
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("zkgo ended: %v\n%s", s.err, s.out)
		case <-ctx.Done():
			s.Kill()
			return fmt.Errorf("zkgo does not listen after %v\n%s", Patience, s.out)
		case <-tick.C:
		}
	}
}

// Kill ends the process like kill -9 and waits until it is gone.
func (s *Server) Kill() {
	s.cmd.Process.Kill() //nolint:errcheck // it may be gone already
	<-s.done
}

// Stop asks the process to end and returns how it ended.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case <-s.done:
		return s.err
	case <-time.After(Patience):
		s.Kill()
		return fmt.Errorf("zkgo did not stop within %v\n%s", Patience, s.out)
	}
}

// Done returns a channel that is closed when the process has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Output returns what the process has printed.
func (s *Server) Output() string { return s.out.String() }

// Pid returns the process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// lockedBuffer collects a process's output while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
