package failover

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// EtcdVersion returns the version that the installed etcd reports. It returns an error if
// etcd is not installed.
func EtcdVersion() (string, error) {
	out, err := exec.Command("etcd", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("Debian's etcd-server is not installed: %w", err)
	}
	first, _, _ := bytes.Cut(out, []byte("\n"))
	return strings.ReplaceAll(string(first), " Version: ", " "), nil
}

// StartEtcd starts n etcd servers with their default settings in a directory and returns
// when all serve. etcd has no four-letter words: methods of the Ensemble that use them
// fail.
func StartEtcd(dir string, n int) (*Ensemble, error) {
	ports, err := oracle.FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("m%d=http://127.0.0.1:%d", i+1, ports[n+i]))
	}
	e := &Ensemble{Program: Program{Name: "etcd"}}
	for i := range n {
		s := &Server{ID: i + 1, Addr: fmt.Sprintf("127.0.0.1:%d", ports[i]), Dir: filepath.Join(dir, fmt.Sprint("server", i+1))}
		if err := os.MkdirAll(s.Dir, 0o700); err != nil {
			return nil, err
		}
		s.program = Program{Name: "etcd", command: func(string) (*exec.Cmd, error) {
			client, peer := "http://"+s.Addr, fmt.Sprintf("http://127.0.0.1:%d", ports[n+i])
			return exec.Command("etcd", "--name", fmt.Sprint("m", s.ID), "--data-dir", filepath.Join(s.Dir, "data"),
				"--listen-client-urls", client, "--advertise-client-urls", client,
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--initial-cluster", strings.Join(members, ","), "--log-level", "error"), nil
		}}
		e.Servers = append(e.Servers, s)
	}
	for _, s := range e.Servers {
		if err := s.Launch(); err != nil {
			e.Kill()
			return nil, err
		}
	}
	for _, s := range e.Servers {
		if err := s.awaitHealth(); err != nil {
			e.Kill()
			return nil, err
		}
	}
	return e, nil
}

// awaitHealth waits until an etcd server reports that it is healthy, that is, that it
// knows a leader.
func (s *Server) awaitHealth() error {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if healthy(&client, s.Addr) {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("server %d of etcd has ended:\n%s", s.ID, s.tail())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("server %d of etcd does not serve after %v:\n%s", s.ID, patience, s.tail())
}

func healthy(client *http.Client, addr string) bool {
	resp, err := client.Get("http://" + addr + "/health")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK && bytes.Contains(text, []byte(`"true"`))
}
