package lockbench

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/tests/kit/servers"
	"github.com/zkgo/zkgo/tests/perf/lockbench/redis"
)

// service is a group of servers that provides locks.
type service struct {
	*servers.Ensemble
	durable string // the durability of an acknowledged write
}

func zkgo(dir, binary string, n int) (*service, error) {
	e, err := servers.Lay(servers.Zkgo(binary), filepath.Join(dir, fmt.Sprint("zkgo-", n)), n)
	return &service{e, onDisk(n)}, err
}

func zooKeeper(dir string, n int) (*service, error) {
	p, err := servers.ZooKeeper("1000m")
	if err != nil {
		return nil, err
	}
	e, err := servers.Lay(p, filepath.Join(dir, fmt.Sprint("zookeeper-", n)), n)
	return &service{e, onDisk(n)}, err
}

func onDisk(n int) string {
	if n == 1 {
		return "fsynced"
	}
	return fmt.Sprintf("fsynced by %d of %d", n/2+1, n)
}

func etcd(dir string, n int) (*service, error) {
	if _, err := servers.EtcdVersion(); err != nil {
		return nil, err
	}
	e, err := servers.LayEtcd(filepath.Join(dir, fmt.Sprint("etcd-", n)), n)
	return &service{e, onDisk(n)}, err
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
		name, durable = name+"-always", onDisk(n)
	}
	if appendOnly != "no" {
		args = append(args, "--appendonly", "yes", "--appendfsync", appendOnly)
	}
	e, _, err := servers.Prepare("Redis", filepath.Join(dir, name), n)
	if err != nil {
		return nil, err
	}
	for _, s := range e.Servers {
		s.Args, s.Ready = append(redisCommand(s), args...), briefly(func(ctx context.Context) error { return pong(ctx, s) })
	}
	return &service{e, durable}, nil
}

// redisCommand returns the command that starts a server with Redis's defaults in the
// directory.
func redisCommand(s *servers.Server) []string {
	_, port, _ := net.SplitHostPort(s.Addr) // Prepare joined the address
	return []string{"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", filepath.Join(s.Dir, "data")}
}

// briefly bounds a question to a server.
func briefly(f func(ctx context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return f(ctx)
	}
}

func pong(ctx context.Context, s *servers.Server) error {
	c, err := redis.Dial(ctx, s.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Do(ctx, "PING")
	return err
}
