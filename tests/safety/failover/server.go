package failover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// patience bounds every wait for something that should take seconds at most.
const patience = 90 * time.Second

// Program is a program to measure.
type Program struct {
	// Name is its name in the results.
	Name string
	// Version is the version that it reports.
	Version string
	// command returns the command that starts a server with a zoo.cfg.
	command func(cfg string) (*exec.Cmd, error)
}

// Zkgo returns the zkgo binary at path.
func Zkgo(path string) Program {
	version := "zkgo"
	if out, err := exec.Command(path, "version").Output(); err == nil {
		version = strings.TrimSpace(string(out))
	}
	return Program{Name: "zkgo", Version: version, command: func(cfg string) (*exec.Cmd, error) {
		return exec.Command(path, "server", cfg), nil
	}}
}

// ZooKeeper returns Apache ZooKeeper with the options that its own start script passes to
// Java. heap is the maximum size of Java's heap; the script sets 1000m.
func ZooKeeper(heap string) (Program, error) {
	lib, err := oracle.Dir()
	if err != nil {
		return Program{}, err
	}
	return Program{Name: "ZooKeeper", Version: "Apache ZooKeeper " + oracle.Version, command: func(cfg string) (*exec.Cmd, error) {
		return exec.Command("java", "-Xmx"+heap, "-Dfile.encoding=UTF-8", "-Djava.awt.headless=true",
			"-cp", lib+string(os.PathListSeparator)+filepath.Join(lib, "*"),
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg), nil
	}}, nil
}

// Command returns the command that runs a server with a zoo.cfg.
func (p Program) Command(cfg string) (*exec.Cmd, error) { return p.command(cfg) }

// Server is one server of an ensemble, running or not.
type Server struct {
	ID   int
	Addr string // for clients
	Dir  string // zoo.cfg, data and the output of the process

	program Program
	cmd     *exec.Cmd
	done    chan struct{} // closed after the process was reaped
}

// Ensemble is three servers, or the number passed to StartServers.
type Ensemble struct {
	Program Program
	Servers []*Server

	crowds int     // gathered so far; each gets its own znode names
	disks  []*disk // the servers' disks, if they can hang
}

// size is the number of servers.
const size = 3

// lay writes the configurations of n servers: ZooKeeper's own sample configuration, the
// list of servers if there is more than one, and the extra lines. data returns the data
// directory of server i.
func lay(p Program, dir string, n int, data func(i int) string, lines ...string) (*Ensemble, error) {
	ports, err := oracle.FreePorts(3 * n)
	if err != nil {
		return nil, err
	}
	var list strings.Builder
	for _, line := range lines {
		list.WriteString(line + "\n")
	}
	for i := range n {
		if n == 1 {
			break
		}
		fmt.Fprintf(&list, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[n+2*i], ports[n+2*i+1])
	}
	e := &Ensemble{Program: p}
	for i := range n {
		s := &Server{ID: i + 1, Addr: fmt.Sprintf("127.0.0.1:%d", ports[i]), Dir: filepath.Join(dir, fmt.Sprint("server", i+1)), program: p}
		if err := os.MkdirAll(s.Dir, 0o700); err != nil {
			return nil, err
		}
		where := filepath.Join(s.Dir, "data")
		if data != nil {
			where = data(i)
		} else if err := os.Mkdir(where, 0o700); err != nil {
			return nil, err
		}
		text := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n"+
			"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n%s", where, ports[i], list.String())
		if err := errors.Join(
			os.WriteFile(filepath.Join(where, "myid"), fmt.Appendln(nil, s.ID), 0o600),
			os.WriteFile(s.cfg(), []byte(text), 0o600),
		); err != nil {
			return nil, err
		}
		e.Servers = append(e.Servers, s)
	}
	return e, nil
}

// Start starts an ensemble in a directory and returns when all serve.
func Start(p Program, dir string) (*Ensemble, error) { return start(p, dir, nil) }

// StartServers is Start for any number of servers; one server runs standalone. lines are
// added to zoo.cfg.
func StartServers(p Program, dir string, n int, lines ...string) (*Ensemble, error) {
	e, err := lay(p, dir, n, nil, lines...)
	if err != nil {
		return nil, err
	}
	if err := e.startAll(); err != nil {
		e.Kill()
		return nil, err
	}
	return e, nil
}

func start(p Program, dir string, data func(i int) string) (*Ensemble, error) {
	e, err := lay(p, dir, size, data)
	if err != nil {
		return nil, err
	}
	if err := e.startAll(); err != nil {
		e.Kill()
		return nil, err
	}
	return e, nil
}

func (e *Ensemble) startAll() error {
	for _, s := range e.Servers {
		if err := s.Launch(); err != nil {
			return err
		}
	}
	return e.Await()
}

// Await waits until every server serves and the leader has both followers.
func (e *Ensemble) Await() error {
	for _, s := range e.Servers {
		if err := s.Await(); err != nil {
			return err
		}
	}
	if len(e.Servers) == 1 {
		return nil
	}
	synced := regexp.MustCompile(fmt.Sprintf(`zk_synced_followers\t%d(\.0)?\n`, len(e.Servers)-1))
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if l := e.Leader(); l != nil {
			if out, err := l.Word("mntr", time.Second); err == nil && synced.MatchString(out) {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the leader of %s does not have all followers after %v", e.Program.Name, patience)
}

// Leader returns the server that leads, or nil while there is none.
func (e *Ensemble) Leader() *Server {
	for _, s := range e.Servers {
		if s.Running() {
			if st, err := s.Status(); err == nil && st.Mode == "leader" {
				return s
			}
		}
	}
	return nil
}

// Kill kills all running processes.
func (e *Ensemble) Kill() {
	for _, s := range e.Servers {
		s.Kill()
	}
}

// Epoch returns the newest epoch that any server reports. It increases with every
// election.
func (e *Ensemble) Epoch() int64 {
	var newest int64
	for _, s := range e.Servers {
		if st, err := s.Status(); err == nil {
			newest = max(newest, st.Epoch)
		}
	}
	return newest
}

func (s *Server) cfg() string { return filepath.Join(s.Dir, "zoo.cfg") }

// Launch starts the process and does not wait for it to serve.
func (s *Server) Launch() error {
	cmd, err := s.program.command(s.cfg())
	if err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(s.Dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = out, out, s.Dir, sysProcAttr()
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel kills the child when the thread that started it ends: keep that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its output says how it ended
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting a server of %s: %w", s.program.Name, err)
	}
	s.cmd, s.done = cmd, done
	return nil
}

// PID returns the id of the process that was launched last.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Running reports whether the process runs, frozen or not.
func (s *Server) Running() bool {
	if s.done == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Await waits until the server serves clients.
func (s *Server) Await() error {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if st, err := s.Status(); err == nil && (st.Mode == "leader" || st.Mode == "follower" || st.Mode == "standalone") {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("server %d of %s has ended:\n%s", s.ID, s.program.Name, s.tail())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("server %d of %s does not serve after %v:\n%s", s.ID, s.program.Name, patience, s.tail())
}

// tail returns the end of the process's output.
func (s *Server) tail() string {
	b, err := os.ReadFile(filepath.Join(s.Dir, "out"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}

// Kill ends the process as kill -9 does and waits until it is gone.
func (s *Server) Kill() {
	if s.Running() {
		_ = s.cmd.Process.Kill() // it may just have ended
		<-s.done
	}
}

// Stop asks the process to end and waits until it has ended.
func (s *Server) Stop() error {
	if err := terminate(s.cmd.Process); err != nil {
		return err
	}
	select {
	case <-s.done:
		return nil
	case <-time.After(patience):
		s.Kill()
		return fmt.Errorf("server %d of %s did not stop within %v", s.ID, s.program.Name, patience)
	}
}

// State is the information from srvr.
type State struct {
	Mode  string
	Epoch int64
}

var srvr = regexp.MustCompile(`(?s)Zxid: 0x([0-9a-f]+)\nMode: (\w+)`)

// Status returns the server's state, or an error if it doesn't serve.
func (s *Server) Status() (State, error) {
	out, err := s.Word("srvr", time.Second)
	if err != nil {
		return State{}, err
	}
	found := srvr.FindStringSubmatch(out)
	if found == nil {
		return State{}, fmt.Errorf("srvr of server %d: %q", s.ID, out)
	}
	zxid, err := strconv.ParseUint(found[1], 16, 64)
	return State{found[2], int64(zxid >> 32)}, err
}

// Word sends a four-letter word and returns the reply.
func (s *Server) Word(word string, limit time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, limit)
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
