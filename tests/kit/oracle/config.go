package oracle

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Configure creates the directories of n servers on free ports, with zoo.cfg, data and,
// in an ensemble, myid. zkgo accepts the same files. A line replaces the default line of the same
// key.
func Configure(dir string, n int, lines ...string) ([]*Server, error) {
	perServer := 1
	if n > 1 {
		perServer = 3
	}
	ports, err := FreePorts(n * perServer)
	if err != nil {
		return nil, err
	}
	var members []string
	if n > 1 {
		members = append(members, "initLimit=20", "syncLimit=10")
		for i := range n {
			members = append(members, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", i+1, ports[n+2*i], ports[n+2*i+1]))
		}
	}
	servers := make([]*Server, n)
	for i := range servers {
		s := &Server{Port: ports[i], Dir: filepath.Join(dir, fmt.Sprint("server", i+1))}
		data := filepath.Join(s.Dir, "data")
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		if n > 1 {
			s.ID = i + 1
			if err := os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, s.ID), 0o600); err != nil {
				return nil, err
			}
		}
		all := override(append([]string{
			"tickTime=2000",
			"dataDir=" + data,
			fmt.Sprint("clientPort=", s.Port),
			"clientPortAddress=127.0.0.1",
			"maxClientCnxns=0",
			"admin.enableServer=false",
			"4lw.commands.whitelist=*",
		}, members...), lines)
		text := strings.Join(all, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(s.Dir, "zoo.cfg"), []byte(text), 0o600); err != nil {
			return nil, err
		}
		servers[i] = s
	}
	return servers, nil
}

// override returns extra, after the defaults for keys that extra doesn't set.
func override(defaults, extra []string) []string {
	set := make(map[string]bool)
	for _, line := range extra {
		key, _, _ := strings.Cut(line, "=")
		set[key] = true
	}
	var lines []string
	for _, line := range defaults {
		if key, _, _ := strings.Cut(line, "="); !set[key] {
			lines = append(lines, line)
		}
	}
	return append(lines, extra...)
}

// The range from which FreePorts chooses. The system doesn't use these ports for connections that a
// client opens, so a free port stays free until the server listens, and while a server restarts.
const (
	firstPort = 10_000
	lastPort  = 32_767 // Linux chooses ports for clients from 32768 on
)

// chosen has the ports that this process has chosen. Tests run in parallel, and a server listens
// only a while after its port is chosen.
var chosen sync.Map

// FreePorts returns n different TCP ports of 127.0.0.1 at which no process listens, and never
// the same one twice. Another process may choose the same ones, so callers should retry.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	var last error
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		if _, twice := chosen.LoadOrStore(port, true); twice {
			_ = l.Close()
			continue
		}
		// Keep it open until all are chosen, so that we don't choose a port twice.
		defer l.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("oracle: looking for %d free ports: %w", n, last)
}
