// Package servers runs ensembles of server processes on one machine: of zkgo, of Apache
// ZooKeeper with the options of its own start script, of etcd, and of any other program. It starts
// both sides in suites that compare zkgo with another program.
//
// It imports tests/kit/oracle and tests/kit/process.
package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// Program is a server program that reads a zoo.cfg.
type Program struct {
	// Name is its name in the results.
	Name string
	// Version is the version that it reports.
	Version string
	command []string // that starts a server, without the path of its zoo.cfg
}

// On returns the program with its servers pinned to a list of CPUs, in taskset's format; "" pins
// nothing.
func (p Program) On(cpus string) Program {
	p.command = Pinned(cpus, p.command)
	return p
}

// Pinned returns the command line that runs another one on a list of CPUs; "" pins
// nothing.
func Pinned(cpus string, command []string) []string {
	if cpus == "" {
		return command
	}
	return append([]string{"taskset", "-c", cpus}, command...)
}

// Zkgo returns the zkgo binary at path.
func Zkgo(path string) Program {
	version := "zkgo"
	if out, err := exec.Command(path, "version").Output(); err == nil {
		version = strings.TrimSpace(string(out))
	}
	return Program{Name: "zkgo", Version: version, command: []string{path, "server"}}
}

// ZooKeeper returns Apache ZooKeeper with the options that its own start script passes to
// Java. heap is the maximum size of Java's heap; the script sets 1000m.
func ZooKeeper(heap string) (Program, error) {
	lib, err := oracle.Dir()
	if err != nil {
		return Program{}, err
	}
	return Program{Name: "ZooKeeper", Version: "Apache ZooKeeper " + oracle.Version, command: []string{"java", "-Xmx" + heap,
		"-Dfile.encoding=UTF-8", "-Djava.awt.headless=true", "-cp", lib + string(os.PathListSeparator) + filepath.Join(lib, "*"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain"}}, nil
}

// Named returns zkgo or ZooKeeper. It builds zkgo in dir unless binary names one.
func Named(name, heap, binary, dir string) (Program, error) {
	switch {
	case name == "ZooKeeper":
		return ZooKeeper(heap)
	case name != "zkgo":
		return Program{}, fmt.Errorf("no program %q: zkgo or ZooKeeper", name)
	case binary == "":
		binary = filepath.Join(dir, "zkgo-binary")
		if err := process.Build(binary); err != nil {
			return Program{}, err
		}
	}
	return Zkgo(binary), nil
}

// Command returns the command line that runs a server with a zoo.cfg.
func (p Program) Command(cfg string) []string {
	return append(p.command[:len(p.command):len(p.command)], cfg)
}

// Server is one server, running or not.
type Server struct {
	ID   int
	Addr string // for clients
	Dir  string // of its files; "out" is the process's output
	Args []string
	// Ready asks the server once whether it serves.
	Ready func() error

	*process.Proc // nil before the first launch
	ensemble      string
}

// Ensemble is a group of servers.
type Ensemble struct {
	Name    string // of the program
	Servers []*Server
	synced  bool // the servers have a leader, and its followers must be in sync
}

// Prepare chooses ports for clients and creates directories with an empty directory data,
// for n servers of any program. It returns further ports, two for each server. The caller
// sets Args and Ready.
func Prepare(name, dir string, n int) (*Ensemble, []int, error) {
	ports, err := oracle.FreePorts(3 * n)
	if err != nil {
		return nil, nil, err
	}
	e := &Ensemble{Name: name}
	for i := range n {
		s := &Server{ID: i + 1, Addr: fmt.Sprintf("127.0.0.1:%d", ports[i]), Dir: filepath.Join(dir, fmt.Sprint("server", i+1)), ensemble: name}
		if err := os.MkdirAll(filepath.Join(s.Dir, "data"), 0o700); err != nil {
			return nil, nil, err
		}
		e.Servers = append(e.Servers, s)
	}
	return e, ports[n:], nil
}

// Lay writes the configurations of n servers: ZooKeeper's own sample configuration, the
// list of servers if there is more than one, and lines, which replace others of the same
// key.
func Lay(p Program, dir string, n int, lines ...string) (*Ensemble, error) {
	configured, err := oracle.Configure(dir, n, append([]string{"initLimit=10", "syncLimit=5"}, lines...)...)
	if err != nil {
		return nil, err
	}
	e := &Ensemble{Name: p.Name, synced: n > 1}
	for i, c := range configured {
		s := &Server{ID: i + 1, Addr: c.Addr(), Dir: c.Dir, Args: p.Command(filepath.Join(c.Dir, "zoo.cfg")), ensemble: p.Name}
		s.Ready = func() error {
			st, err := s.Status()
			if err == nil && !st.Serves() && st.Mode != "standalone" {
				err = fmt.Errorf("its mode is %s", st.Mode)
			}
			return err
		}
		e.Servers = append(e.Servers, s)
	}
	return e, nil
}

// Start starts n servers in a directory and returns when all serve. One server runs
// standalone. The lines come from Lay.
func Start(p Program, dir string, n int, lines ...string) (*Ensemble, error) {
	e, err := Lay(p, dir, n, lines...)
	if err != nil {
		return nil, err
	}
	return e, e.Start()
}

// Start starts all servers and waits until they serve. If they don't, it kills them.
func (e *Ensemble) Start() error {
	err := e.Launch()
	if err == nil {
		err = e.Await()
	}
	if err != nil {
		e.Kill()
	}
	return err
}

// Launch starts all processes and does not wait for them to serve.
func (e *Ensemble) Launch() error {
	for _, s := range e.Servers {
		if err := s.Launch(); err != nil {
			return err
		}
	}
	return nil
}

// Await waits until every server serves and a leader has all its followers.
func (e *Ensemble) Await() error {
	for _, s := range e.Servers {
		if err := s.Await(); err != nil {
			return err
		}
	}
	if !e.synced {
		return nil
	}
	synced := regexp.MustCompile(fmt.Sprintf(`zk_synced_followers\t%d(\.0)?\n`, len(e.Servers)-1))
	return wait.For(wait.Patience, "the leader of "+e.Name+" has all followers", func() (bool, error) {
		l := e.Leader()
		if l == nil {
			return false, nil
		}
		out, err := l.Word("mntr")
		return err == nil && synced.MatchString(out), nil
	})
}

// Leader returns the server that leads or runs alone, or nil while there is none.
func (e *Ensemble) Leader() *Server {
	for _, s := range e.Servers {
		if s.Running() {
			if st, err := s.Status(); err == nil && (st.Mode == "leader" || st.Mode == "standalone") {
				return s
			}
		}
	}
	return nil
}

// Kill kills all running processes: first all, then it waits for them.
func (e *Ensemble) Kill() {
	for _, s := range e.Servers {
		if s.Running() {
			_ = s.Signal(os.Kill) // it may just have ended
		}
	}
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
			newest = max(newest, st.Epoch())
		}
	}
	return newest
}

// Addrs returns the clients' addresses.
func (e *Ensemble) Addrs() []string {
	var all []string
	for _, s := range e.Servers {
		all = append(all, s.Addr)
	}
	return all
}

// String names the server.
func (s *Server) String() string { return fmt.Sprintf("server %d of %s", s.ID, s.ensemble) }

// Launch starts the process and does not wait for it to serve.
func (s *Server) Launch() error {
	cmd := exec.Command(s.Args[0], s.Args[1:]...)
	cmd.Dir = s.Dir
	p, err := process.Launch(cmd, filepath.Join(s.Dir, "out"))
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	s.Proc = p
	return nil
}

// Await waits until the server serves clients.
func (s *Server) Await() error { return s.AwaitThat("serves", s.Ready) }

// AwaitThat waits until something is true of the server, and returns early if it ends.
func (s *Server) AwaitThat(what string, ok func() error) error {
	return s.Proc.Await(wait.Patience, s.String()+" "+what, ok)
}

// Stop asks the process to end and waits until it has ended. Java ends with an error in
// that case, which we ignore.
func (s *Server) Stop() error {
	err := s.Proc.Stop(syscall.SIGTERM)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// briefly bounds the questions to a server that may be frozen.
const briefly = time.Second

// Status returns the server's status, or an error if it doesn't serve.
func (s *Server) Status() (process.Status, error) { return process.Ask(s.Addr, briefly) }

// Word sends a four-letter word and returns the reply.
func (s *Server) Word(word string) (string, error) { return process.Word(s.Addr, word, briefly) }
