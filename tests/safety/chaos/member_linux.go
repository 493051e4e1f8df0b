package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// askTimeout bounds a four-letter word to a server that may be stopped.
const askTimeout = 2 * time.Second

// Member is one server of the ensemble, running or not.
type Member struct {
	ID  int
	c   *Cluster
	dir string // with zoo.cfg and server.log

	// The host that the server listens on, and the host that the others dial:
	// they differ if there is a proxy. The network sets both.
	listens, dialled string

	mu   sync.Mutex
	proc *process.Proc
}

// Data returns the server's data directory.
func (m *Member) Data() string { return filepath.Join(m.dir, "data") }

// Log returns the file with everything that the server has printed.
func (m *Member) Log() string { return filepath.Join(m.dir, "server.log") }

// line returns the server's line of zoo.cfg, without its key.
func (m *Member) line() string {
	return fmt.Sprintf("%s:%d:%d:participant;%s:%d", m.dialled, m.c.ports.quorum, m.c.ports.election, m.listens, m.c.ports.client)
}

// ClientAddr returns the address on which the server listens for clients, without
// a proxy.
func (m *Member) ClientAddr() string { return addr(m.listens, m.c.ports.client) }

func addr(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

func (m *Member) configure() error {
	var b strings.Builder
	fmt.Fprintf(&b, "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\n", m.Data())
	fmt.Fprintf(&b, "quorumListenAddress=%s\nadmin.serverAddress=%s\nadmin.serverPort=%d\n", m.listens, m.listens, m.c.ports.admin)
	fmt.Fprintf(&b, "logStore=%s\nsnapCount=%d\nmaxClientCnxns=0\nreconfigEnabled=true\nDigestAuthenticationProvider.superDigest=%s\n",
		m.c.opt.Store, m.c.opt.SnapCount, superDigest)
	if slices.Contains(m.c.opt.Linear, m.ID) {
		b.WriteString("linearizableReads=true\n")
	}
	for _, o := range m.c.Members {
		fmt.Fprintf(&b, "server.%d=%s\n", o.ID, o.line())
	}
	if err := os.MkdirAll(m.Data(), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(m.dir, "zoo.cfg"), []byte(b.String()), 0o600), m.writeID())
}

func (m *Member) writeID() error {
	return os.WriteFile(filepath.Join(m.Data(), "myid"), []byte(strconv.Itoa(m.ID)+"\n"), 0o600)
}

// Start starts the process. Its port is open to the others as soon as the process
// listens.
func (m *Member) Start() error {
	cmd := exec.Command(m.c.opt.Bin, "server", filepath.Join(m.dir, "zoo.cfg"))
	p, err := process.LaunchIn(func() (bool, error) { return m.c.net.enter(m) }, cmd, m.Log())
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.proc = p
	m.mu.Unlock()
	m.c.forget(m)
	go m.open(p)
	return nil
}

// open opens the proxy's ports once the process listens everywhere, and closes them when the
// process ends. If a port were open earlier, the first connection that the process refuses would
// close it permanently.
func (m *Member) open(p *process.Proc) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for p.Running() {
		if m.listening(m.c.ports.quorum) && m.listening(m.c.ports.client) {
			m.mu.Lock()
			if m.proc == p {
				if err := m.c.net.up(m); err != nil {
					m.c.trace.Printf("port of server %d: %v", m.ID, err)
				}
			}
			m.mu.Unlock()
			break
		}
		<-tick.C
	}
	<-p.Done()
	m.mu.Lock()
	if m.proc == p {
		m.c.net.down(m)
	}
	m.mu.Unlock()
}

func (m *Member) listening(port int) bool {
	conn, err := m.dial(port)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// dial connects to a port of the server, bypassing all network faults.
func (m *Member) dial(port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	return m.c.net.dial(ctx, m, addr(m.listens, port))
}

// session opens a session on the server, bypassing all network faults.
func (m *Member) session(timeout time.Duration) (*process.Client, error) {
	conn, err := m.dial(m.c.ports.client)
	if err != nil {
		return nil, err
	}
	return process.Attach(conn, 0, nil, timeout, process.Patience)
}

func (m *Member) running() *process.Proc {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc
}

// Kill ends the process like kill -9.
func (m *Member) Kill() {
	p := m.running()
	if !p.Running() {
		return
	}
	m.mu.Lock()
	m.c.net.down(m) // as its kernel would: after a connection has ended, the port should not be open for any client
	m.mu.Unlock()
	p.Kill()
	m.c.forget(m)
}

// Stop asks the process to end and returns an error if it did not end cleanly.
func (m *Member) Stop() error {
	defer m.c.forget(m)
	if err := m.running().Stop(syscall.SIGTERM); err != nil {
		return fmt.Errorf("server %d, asked to stop: %w", m.ID, err)
	}
	return nil
}

// Status is a server's status. The mode is empty if the server doesn't serve.
type Status = process.Status

// Status asks the server, bypassing the proxies.
func (m *Member) Status() (Status, error) {
	conn, err := m.dial(m.c.ports.client)
	if err != nil {
		return Status{}, err
	}
	srvr, err := process.WordOn(conn, "srvr", askTimeout)
	if err != nil {
		return Status{}, err
	}
	return process.ParseStatus(srvr)
}

// Logged returns the server's log from an offset on.
func (m *Member) Logged(from int64) string {
	f, err := os.Open(m.Log())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// LogEnd returns the offset of the end of the log.
func (m *Member) LogEnd() int64 {
	st, err := os.Stat(m.Log())
	if err != nil {
		return 0
	}
	return st.Size()
}
