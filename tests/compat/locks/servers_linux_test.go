package locks

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// servers is a standalone server or an ensemble, of zkgo or of ZooKeeper.
type servers struct {
	t    *testing.T
	all  []*server
	real bool
}

// server is one server.
type server struct {
	dir  string
	port int
	cmd  *proc
	java *oracle.Server
}

// start starts n servers on free ports; if a port has been taken meanwhile, it tries others.
func start(t *testing.T, n int, real bool) *servers {
	t.Helper()
	var err error
	for range 3 {
		s := lay(t, n, real)
		for i := range s.all {
			if err = s.launch(i); err != nil {
				break
			}
		}
		if err == nil {
			err = s.await()
		}
		if err == nil {
			return s
		}
		for i := range s.all {
			s.kill(i)
		}
	}
	t.Fatal(err)
	return nil
}

// lay writes the configurations.
func lay(t *testing.T, n int, real bool) *servers {
	t.Helper()
	ports, err := oracle.FreePorts(3 * n)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for i := range n {
		if n > 1 {
			fmt.Fprintf(&list, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[n+2*i], ports[n+2*i+1])
		}
	}
	s := &servers{t: t, real: real}
	for i := range n {
		one := &server{dir: filepath.Join(t.TempDir(), fmt.Sprint("server", i+1)), port: ports[i]}
		data := filepath.Join(one.dir, "data")
		if err := os.MkdirAll(data, 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("tickTime=1000\ninitLimit=40\nsyncLimit=10\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n"+
			"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n%s", data, one.port, list.String())
		for name, content := range map[string]string{"data/myid": fmt.Sprintln(i + 1), "zoo.cfg": text} {
			if err := os.WriteFile(filepath.Join(one.dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.all = append(s.all, one)
	}
	t.Cleanup(func() {
		for i, one := range s.all {
			s.kill(i)
			if t.Failed() && one.cmd != nil {
				t.Log(one.cmd.tail())
			}
		}
	})
	return s
}

// connect returns the connect string.
func (s *servers) connect() string {
	var all []string
	for _, one := range s.all {
		all = append(all, one.addr())
	}
	return strings.Join(all, ",")
}

func (one *server) addr() string { return fmt.Sprintf("127.0.0.1:%d", one.port) }

func (s *servers) launch(i int) error {
	one := s.all[i]
	if s.real {
		one.java = oracle.At(one.dir, i+1, one.port)
		return one.java.Launch()
	}
	var err error
	one.cmd, err = launch(one.dir, fmt.Sprint("server", i+1), process.Binary(s.t), "server", filepath.Join(one.dir, "zoo.cfg"))
	return err
}

// kill kills a server as kill -9 does.
func (s *servers) kill(i int) {
	if one := s.all[i]; one.java != nil {
		one.java.Stop()
	} else if one.cmd != nil {
		one.cmd.kill()
	}
}

// await waits until all serve.
func (s *servers) await() error {
	for i, one := range s.all {
		err := eventually(func() (bool, error) {
			if one.cmd != nil && !one.cmd.running() {
				return false, fmt.Errorf("it has ended:\n%s", one.cmd.tail())
			}
			return one.mode() != "", nil
		})
		if err != nil {
			return fmt.Errorf("server %d does not serve: %w", i+1, err)
		}
	}
	return nil
}

// leader returns the index of the leader or of the standalone server.
func (s *servers) leader() (leader int, err error) {
	err = eventually(func() (bool, error) {
		for i, one := range s.all {
			if mode := one.mode(); mode == "leader" || mode == "standalone" {
				leader = i
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return 0, fmt.Errorf("nobody leads: %w", err)
	}
	return leader, nil
}

// mode returns the server's mode from srvr, or "" if it doesn't serve.
func (one *server) mode() string {
	conn, err := net.DialTimeout("tcp", one.addr(), time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	b, _ := io.ReadAll(conn)
	_, rest, _ := strings.Cut(string(b), "Mode: ")
	mode, _, _ := strings.Cut(rest, "\n")
	return mode
}
