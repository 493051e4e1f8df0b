// Package testcluster runs servers as the harness of go-zookeeper does: each has a zoo.cfg, a
// directory and TCP ports, and can be stopped and started again with its data.
//
// It imports server.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/server"
)

const (
	host     = "127.0.0.1"
	patience = 30 * time.Second // for all servers to serve
)

// settings are the same as in go-zookeeper's harness. The super user's password is "test".
const settings = `tickTime=500
initLimit=10
syncLimit=5
admin.enableServer=false
reconfigEnabled=true
4lw.commands.whitelist=*
extendedTypesEnabled=true
DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=
`

// Config describes one server of an ensemble.
type Config struct {
	ID                 int
	Host               string
	PeerPort           int
	LeaderElectionPort int
}

// Server is a server that can be stopped and started again.
type Server struct {
	ID, Port int
	Path     string // the data directory
	Config   Config

	file string // zoo.cfg
	log  *slog.Logger

	mu  sync.Mutex
	srv *server.Server // nil: stopped
}

// Start writes the configurations of size servers below dir, starts them, and waits until
// they serve. They log to w, which may be nil.
func Start(dir string, size int, w io.Writer) ([]*Server, error) {
	return startAt(freePorts, dir, size, w)
}

// tries is how often Start chooses ports. Another process may use a port before the server
// does.
const tries = 5

// startAt is Start with ports from choose.
func startAt(choose func(n int) ([]int, error), dir string, size int, w io.Writer) (servers []*Server, err error) {
	for range tries {
		ports, err := choose(3 * size)
		if err != nil {
			return nil, err
		}
		if servers, err = start(ports, dir, size, w); !errors.Is(err, syscall.EADDRINUSE) {
			return servers, err
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("in %d tries, another process used a free port before the server could listen on it", tries)
}

func start(ports []int, dir string, size int, w io.Writer) (_ []*Server, err error) {
	log := slog.New(slog.DiscardHandler)
	if w != nil {
		log = slog.New(slog.NewTextHandler(w, nil))
	}
	var servers []*Server
	var list strings.Builder
	for i := range size {
		s := &Server{
			ID: i + 1, Port: ports[3*i], Path: filepath.Join(dir, fmt.Sprintf("srv%d", i+1)), log: log.With("server", i+1),
			Config: Config{ID: i + 1, Host: host, PeerPort: ports[3*i+1], LeaderElectionPort: ports[3*i+2]},
		}
		s.file = filepath.Join(s.Path, "zoo.cfg")
		servers = append(servers, s)
		if size > 1 {
			fmt.Fprintf(&list, "server.%d=%s:%d:%d\n", s.ID, host, s.Config.PeerPort, s.Config.LeaderElectionPort)
		}
	}
	for _, s := range servers {
		if err = errors.Join(s.configure(list.String()), err); err == nil {
			err = s.Start()
		}
	}
	if err == nil {
		err = Wait(servers)
	}
	if err != nil {
		return nil, errors.Join(err, Stop(servers))
	}
	return servers, nil
}

// configure writes zoo.cfg and myid.
func (s *Server) configure(list string) error {
	if err := os.MkdirAll(s.Path, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("%sdataDir=%s\nclientPort=%d\nclientPortAddress=%s\n%s", settings, s.Path, s.Port, host, list)
	if list != "" {
		text += "standaloneEnabled=false\n"
	}
	return errors.Join(os.WriteFile(s.file, []byte(text), 0o600), os.WriteFile(filepath.Join(s.Path, "myid"), []byte(strconv.Itoa(s.ID)+"\n"), 0o600))
}

// Start starts the server with the data that it has. It doesn't wait until the server serves.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv != nil {
		return fmt.Errorf("server %d runs already", s.ID)
	}
	cfg, err := server.LoadConfig(s.file)
	if err != nil {
		return err
	}
	cfg.Logger = s.log
	s.srv, err = server.Start(context.Background(), cfg)
	return err
}

// Stop stops the server. Stopping a server that doesn't run does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv := s.srv
	s.srv = nil
	if srv == nil {
		return nil
	}
	return srv.Close()
}

// Wait waits until every server that runs serves.
func Wait(servers []*Server) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, s := range servers {
		s.mu.Lock()
		srv := s.srv
		s.mu.Unlock()
		if srv == nil {
			continue
		}
		select {
		case <-srv.Ready():
		case <-late.C:
			return fmt.Errorf("not within %v: %v", patience, srv)
		}
	}
	return nil
}

// StartAll starts the servers that don't run, and waits until all serve.
func StartAll(servers []*Server) error {
	for _, s := range servers {
		s.mu.Lock()
		runs := s.srv != nil
		s.mu.Unlock()
		if runs {
			continue
		}
		if err := s.Start(); err != nil {
			return err
		}
	}
	return Wait(servers)
}

// Stop stops all servers.
func Stop(servers []*Server) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.Stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Find returns the server with an address, host:port.
func Find(servers []*Server, addr string) *Server {
	for _, s := range servers {
		if strings.HasSuffix(addr, ":"+strconv.Itoa(s.Port)) {
			return s
		}
	}
	panic("unknown server: " + addr) // as in go-zookeeper's harness, which has no error here
}

// freePorts returns ports that no program listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // it is a TCP listener
	}
	return ports, nil
}
