package oracle

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// patience bounds every wait. We can be generous because we don't measure anything: a
// healthy server starts in about a second, but an overloaded machine may need much longer.
const patience = 90 * time.Second

// Options describes how servers are started.
type Options struct {
	// Config has additional zoo.cfg lines ("enforceQuota=true"). A line replaces the default line
	// of the same key.
	Config []string
	// JVM has additional arguments for java ("-Djute.maxbuffer=2000").
	JVM []string
	// Lib is the directory with the jars of another release; "" means Version's jars.
	Lib string
	// Place, if it isn't nil, is called with each server before it starts, e.g. to call In.
	Place func(s *Server) error
}

// Server is one ZooKeeper process.
type Server struct {
	// ID is the server's number in its ensemble; 0 for a standalone server.
	ID int
	// Port is the client port on 127.0.0.1.
	Port int
	// Dir contains zoo.cfg, the data directory and the log "out".
	Dir string

	jvm   []string
	lib   string
	enter func() (end bool, err error)
	proc  *process.Proc // nil after Stop
}

// Addr returns the client address, host:port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Running reports whether the java process runs.
func (s *Server) Running() bool { return s.proc.Running() }

// PID returns the id of the java process.
func (s *Server) PID() int { return s.proc.PID() }

func (s *Server) log() string { return filepath.Join(s.Dir, "out") }

// Log returns the server's output, for the messages of failing tests.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Run starts the process on the existing directory, e.g. after a Stop, and waits
// until it serves.
func (s *Server) Run() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.await()
}

// At describes a server. The caller has created its directory: zoo.cfg and the files it names. Run
// starts the server; the caller must Stop it.
func At(dir string, id, port int) *Server { return &Server{ID: id, Port: port, Dir: dir} }

// With adds arguments for java.
func (s *Server) With(jvm ...string) *Server {
	s.jvm = append(s.jvm, jvm...)
	return s
}

// In makes the server start on a thread on which enter was called (see process.LaunchIn).
func (s *Server) In(enter func() (end bool, err error)) { s.enter = enter }

// Launch is Run without the wait: a server of an ensemble serves only after
// enough of the others were started.
func (s *Server) Launch() error {
	lib := s.lib
	if lib == "" {
		var err error
		if lib, err = Dir(); err != nil {
			return err
		}
	}
	// We keep it small and quick to start: serial collector, only the first compiler.
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dfile.encoding=UTF-8", "-Djava.awt.headless=true"}
	args = append(args, s.jvm...)
	args = append(args, "-cp", lib+string(os.PathListSeparator)+filepath.Join(lib, "*"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.Dir, "zoo.cfg"))
	cmd := exec.Command("java", args...)
	cmd.Dir = s.Dir
	p, err := process.LaunchIn(s.enter, cmd, s.log())
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	s.proc = p
	return nil
}

// errExited is returned if the process ended before it served.
var errExited = errors.New("oracle: the server ended before it served")

// await waits until srvr names a mode, which a server does only when it serves clients.
func (s *Server) await() error {
	err := s.proc.Await(patience, s.Addr()+" serves", func() error {
		// If a connection arrives before the database is loaded, ZooKeeper can leave it
		// hanging forever, so we give up soon and try another.
		_, err := process.Ask(s.Addr(), 2*time.Second)
		return err
	})
	if err != nil && !s.Running() {
		return fmt.Errorf("%w: %w", errExited, err)
	}
	return err
}

// Word sends a four-letter word and returns the reply.
func (s *Server) Word(word string) (string, error) { return process.Word(s.Addr(), word, patience) }

// Stop kills the process, like kill -9, and waits until it is gone. The directory
// stays, so Run can start the server again.
func (s *Server) Stop() {
	s.proc.Kill()
	s.proc = nil
}

// Freeze stops the process like SIGSTOP, and returns when it has stopped.
func (s *Server) Freeze() error { return s.proc.Freeze() }

// Thaw ends a Freeze.
func (s *Server) Thaw() error { return s.proc.Thaw() }

// Start starts one standalone server and stops it at the end of the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	return ensemble(t, 1, o)[0]
}

// Ensemble starts n servers that form an ensemble, with ids 1 to n, and stops
// them at the end of the test.
func Ensemble(t testing.TB, n int, o Options) []*Server {
	t.Helper()
	if n < 2 {
		t.Fatalf("oracle: an ensemble of %d", n)
	}
	return ensemble(t, n, o)
}

// attempts bounds the retries if another process binds a port after we chose it and before the
// server binds it.
const attempts = 5

func ensemble(t testing.TB, n int, o Options) []*Server {
	t.Helper()
	Need(t)
	var err error
	for range attempts {
		var servers []*Server
		if servers, err = startAll(t.TempDir(), n, o); err == nil {
			t.Cleanup(func() { stopAll(servers) })
			return servers
		}
		stopAll(servers)
		if !errors.Is(err, errExited) {
			break
		}
	}
	t.Fatal(err)
	return nil
}

func stopAll(servers []*Server) {
	for _, s := range servers {
		s.Stop()
	}
}

func startAll(dir string, n int, o Options) ([]*Server, error) {
	servers, err := Configure(dir, n, o.Config...)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		s.jvm, s.lib = o.JVM, o.Lib
		if o.Place != nil {
			if err := o.Place(s); err != nil {
				return servers, err
			}
		}
		if err := s.Launch(); err != nil {
			return servers, err
		}
	}
	for _, s := range servers {
		if err := s.await(); err != nil {
			return servers, err
		}
	}
	return servers, nil
}
