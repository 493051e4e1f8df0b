package oracle

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait. It is generous because nothing is measured: a
// healthy server starts in about a second, but an overloaded machine may need
// much longer.
const patience = 90 * time.Second

// Options describes how servers are started.
type Options struct {
	// Config holds additional zoo.cfg lines ("enforceQuota=true"). A line
	// replaces the default line of the same key.
	Config []string
	// JVM holds additional arguments for java ("-Djute.maxbuffer=2000").
	JVM []string
	// Lib is the directory with the jars of another release; "" means those of
	// Version.
	Lib string
}

// Server is one ZooKeeper process.
type Server struct {
	// ID is the server's number in its ensemble; 0 for a standalone server.
	ID int
	// Port is the client port on 127.0.0.1.
	Port int
	// Dir holds zoo.cfg, the data directory and the log "out".
	Dir string

	jvm  []string
	lib  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process was reaped
}

// Addr returns the client address, host:port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// PID returns the id of the java process, or 0 if it does not run.
func (s *Server) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Log returns what the server has printed, for the messages of failing tests.
func (s *Server) Log() string {
	b, err := os.ReadFile(filepath.Join(s.Dir, "out"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Exited returns a channel that is closed once the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.done }

// Run starts the process on the existing directory, e.g. after a Stop, and waits
// until it serves.
func (s *Server) Run() error {
	if err := s.launch(); err != nil {
		return err
	}
	return s.await()
}

// At describes a server whose directory the caller has created: zoo.cfg and the
// files it names. Run starts the server; the caller has to Stop it.
func At(dir string, id, port int) *Server { return &Server{ID: id, Port: port, Dir: dir} }

// With adds arguments for java.
func (s *Server) With(jvm ...string) *Server {
	s.jvm = append(s.jvm, jvm...)
	return s
}

// Launch is Run without the wait: a server of an ensemble serves only after
// enough of the others were started.
func (s *Server) Launch() error { return s.launch() }

// launch starts java on zoo.cfg and reaps it in the background.
func (s *Server) launch() error {
	lib := s.lib
	if lib == "" {
		var err error
		if lib, err = Dir(); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(filepath.Join(s.Dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	// Keep it small and quick to start: serial collector, only the first
	// compiler.
	args := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dfile.encoding=UTF-8", "-Djava.awt.headless=true"}
	args = append(args, s.jvm...)
	args = append(args, "-cp", lib+string(os.PathListSeparator)+filepath.Join(lib, "*"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.Dir, "zoo.cfg"))
	cmd := exec.Command("java", args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = out, out, s.Dir
	cmd.SysProcAttr = sysProcAttr()

	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		// The parent-death signal is tied to the thread, so keep the thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the log shows how it ended
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("oracle: starting java: %w", err)
	}
	s.cmd, s.done = cmd, done
	return nil
}

// errExited is returned if the process ended before it served.
var errExited = errors.New("oracle: the server ended before it served")

// await waits until "srvr" names a mode, which a server prints only when it
// serves clients.
func (s *Server) await() error {
	deadline := time.Now().Add(patience)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for time.Now().Before(deadline) {
		// ZooKeeper can leave a connection hanging forever that arrives before
		// the database is loaded: give up soon and try another.
		if out, err := s.word("srvr", 2*time.Second); err == nil && strings.Contains(out, "Mode: ") {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("%w:\n%s", errExited, s.Log())
		case <-poll.C:
		}
	}
	return fmt.Errorf("oracle: server at %s does not serve after %v:\n%s", s.Addr(), patience, s.Log())
}

// Word sends a four-letter word and returns the reply.
func (s *Server) Word(word string) (string, error) { return s.word(word, patience) }

func (s *Server) word(word string, limit time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), limit)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

// Stop kills the process, like kill -9, and waits until it is gone. The directory
// stays, so Run can start the server again.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.done
	s.cmd = nil
}

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

// attempts bounds the retries if another process takes a port after we chose it
// and before the server binds it.
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
	servers, err := configure(dir, n, o)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if err := s.launch(); err != nil {
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
