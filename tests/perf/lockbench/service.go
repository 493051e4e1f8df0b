package lockbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/perf/lockbench/redis"
)

// service is a group of servers that provides locks.
type service struct {
	name    string // in the table
	durable string // the durability of an acknowledged write
	procs   []*proc
	launch  func(p *proc, i int) []string // returns the command line of process i
	ready   func(ctx context.Context, p *proc) error
}

// start starts all servers and waits until they serve.
func (s *service) start() error {
	for i, p := range s.procs {
		if err := p.start(s.launch(p, i)...); err != nil {
			return err
		}
	}
	for _, p := range s.procs {
		if err := p.await(func(ctx context.Context) error { return s.ready(ctx, p) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) stop() {
	for _, p := range s.procs {
		p.kill()
	}
}

func (s *service) addrs() []string {
	var list []string
	for _, p := range s.procs {
		list = append(list, p.addr)
	}
	return list
}

// lay prepares n processes, each with a port for clients.
func lay(name, dir string, n int) ([]*proc, []int, error) {
	ports, err := oracle.FreePorts(3 * n)
	if err != nil {
		return nil, nil, err
	}
	list := make([]*proc, n)
	for i := range list {
		where := filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), i+1))
		if err := os.MkdirAll(filepath.Join(where, "data"), 0o700); err != nil {
			return nil, nil, err
		}
		list[i] = &proc{name: fmt.Sprintf("%s, server %d", name, i+1), addr: fmt.Sprintf("127.0.0.1:%d", ports[i]), dir: where}
	}
	return list, ports[n:], nil
}

// zooCfg writes ZooKeeper's own sample configuration for every process.
func zooCfg(procs []*proc, ports []int) error {
	var list strings.Builder
	if len(procs) > 1 {
		list.WriteString("initLimit=10\nsyncLimit=5\n")
		for i := range procs {
			fmt.Fprintf(&list, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[2*i], ports[2*i+1])
		}
	}
	for i, p := range procs {
		data := filepath.Join(p.dir, "data")
		_, port, err := net.SplitHostPort(p.addr)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"+
			"admin.enableServer=false\n4lw.commands.whitelist=*\n%s", data, port, list.String())
		if err := errors.Join(os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, i+1), 0o600),
			os.WriteFile(filepath.Join(p.dir, "zoo.cfg"), []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// fourLetters sends a four-letter word.
func fourLetters(ctx context.Context, addr, word string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if t, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(t); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// serves returns nil if a server of ZooKeeper's kind serves.
func serves(ctx context.Context, p *proc) error {
	out, err := fourLetters(ctx, p.addr, "srvr")
	if err == nil && !strings.Contains(out, "Mode: ") {
		err = fmt.Errorf("srvr: %q", out)
	}
	return err
}

func zkgo(dir, binary string, n int) (*service, error) {
	name := fmt.Sprintf("zkgo-%d", n)
	procs, ports, err := lay(name, dir, n)
	if err != nil {
		return nil, err
	}
	return &service{name: name, durable: onDisk(n), procs: procs, ready: serves,
		launch: func(p *proc, _ int) []string { return []string{binary, "server", filepath.Join(p.dir, "zoo.cfg")} },
	}, zooCfg(procs, ports)
}

// zooKeeper uses the options that ZooKeeper's own start script passes to Java.
func zooKeeper(dir string, n int) (*service, error) {
	lib, err := oracle.Dir()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("zookeeper-%d", n)
	procs, ports, err := lay(name, dir, n)
	if err != nil {
		return nil, err
	}
	return &service{name: name, durable: onDisk(n), procs: procs, ready: serves,
		launch: func(p *proc, _ int) []string {
			return []string{"java", "-Xmx1000m", "-Dfile.encoding=UTF-8", "-Djava.awt.headless=true",
				"-cp", lib + string(os.PathListSeparator) + filepath.Join(lib, "*"),
				"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(p.dir, "zoo.cfg")}
		},
	}, zooCfg(procs, ports)
}

func onDisk(n int) string {
	if n == 1 {
		return "fsynced"
	}
	return fmt.Sprintf("fsynced by %d of %d", n/2+1, n)
}

func etcd(dir string, n int) (*service, error) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, fmt.Errorf("Debian's etcd-server is not installed: %w", err)
	}
	name := fmt.Sprintf("etcd-%d", n)
	procs, ports, err := lay(name, dir, n)
	if err != nil {
		return nil, err
	}
	var members []string
	for i := range procs {
		members = append(members, fmt.Sprintf("m%d=http://127.0.0.1:%d", i+1, ports[i]))
	}
	return &service{name: name, durable: onDisk(n), procs: procs,
		launch: func(p *proc, i int) []string {
			client, peer := "http://"+p.addr, fmt.Sprintf("http://127.0.0.1:%d", ports[i])
			return []string{"etcd", "--name", fmt.Sprintf("m%d", i+1), "--data-dir", filepath.Join(p.dir, "data"),
				"--listen-client-urls", client, "--advertise-client-urls", client,
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--initial-cluster", strings.Join(members, ","), "--log-level", "error"}
		},
		ready: func(ctx context.Context, p *proc) error { return listens(ctx, p.addr) },
	}, nil
}

// redisServers returns n independent servers. appendOnly is "no" or the value of
// appendfsync.
func redisServers(dir string, n int, appendOnly string) (*service, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("Debian's redis-server is not installed: %w", err)
	}
	name, durable := fmt.Sprintf("redis-%d", n), "in memory of one, on disk minutes later"
	args := []string{"--save", "3600 1 300 100 60 10000"}
	switch appendOnly {
	case "everysec":
		name, durable = name+"-everysec", "in memory of one, fsynced within a second"
	case "always":
		name, durable = name+"-always", "fsynced"
		if n > 1 {
			durable = fmt.Sprintf("fsynced by %d of %d", n/2+1, n)
		}
	}
	if appendOnly != "no" {
		args = append(args, "--appendonly", "yes", "--appendfsync", appendOnly)
	}
	procs, _, err := lay(name, dir, n)
	if err != nil {
		return nil, err
	}
	return &service{name: name, durable: durable, procs: procs, ready: pong,
		launch: func(p *proc, _ int) []string { return append(redisCommand(p), args...) }}, nil
}

// redisCommand returns the command that starts a server with Redis's defaults in the
// directory.
func redisCommand(p *proc) []string {
	_, port, _ := net.SplitHostPort(p.addr) // lay joined the address
	return []string{"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", filepath.Join(p.dir, "data")}
}

func pong(ctx context.Context, p *proc) error {
	c, err := redis.Dial(ctx, p.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Do(ctx, "PING")
	return err
}
