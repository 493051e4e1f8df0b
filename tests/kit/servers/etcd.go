package servers

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
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

// LayEtcd prepares n etcd servers with their default settings. etcd has no four-letter
// words: methods that use them fail.
func LayEtcd(dir string, n int) (*Ensemble, error) {
	e, ports, err := Prepare("etcd", dir, n)
	if err != nil {
		return nil, err
	}
	peer := func(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", ports[i]) }
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("m%d=%s", i+1, peer(i)))
	}
	for i, s := range e.Servers {
		client := "http://" + s.Addr
		s.Args = []string{"etcd", "--name", fmt.Sprint("m", s.ID), "--data-dir", filepath.Join(s.Dir, "data"),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer(i), "--initial-advertise-peer-urls", peer(i),
			"--initial-cluster", strings.Join(members, ","), "--log-level", "error"}
		s.Ready = func() error { return healthy(client) }
	}
	return e, nil
}

// StartEtcd starts n etcd servers on a list of CPUs, "" for all, and returns when all
// serve.
func StartEtcd(dir string, n int, cpus string) (*Ensemble, error) {
	e, err := LayEtcd(dir, n)
	if err != nil {
		return nil, err
	}
	for _, s := range e.Servers {
		s.Args = Pinned(cpus, s.Args)
	}
	return e, e.Start()
}

// healthy returns nil if an etcd server reports that it is healthy, that is, that it knows
// a leader.
func healthy(url string) error {
	client := http.Client{Timeout: briefly}
	defer client.CloseIdleConnections()
	resp, err := client.Get(url + "/health")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"true"`))) {
		err = fmt.Errorf("it is not healthy: %s", text)
	}
	return err
}
