package lockbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/kit/servers"
	"github.com/zkgo/zkgo/tests/perf/lockbench/redis"
)

// The failover is the same for both services: the next leader stops for a moment, other clients
// write, a client acquires a lock, we kill the leading server, and the other one replaces it. Then
// a second client asks for the lock.

// otherWork is how many writes of workSize bytes other clients make while the server is
// stopped: more than its connection can buffer.
const otherWork, workSize = 40, 900_000

// sentinels is the number of processes that watch a Redis primary; quorum is how many must agree
// that it is gone.
const sentinels, quorum = 3, 2

// RedisFailover shows a lock that two clients hold at once, in a primary and a replica
// watched by Sentinel, although the primary fsynced before every reply.
func RedisFailover(ctx context.Context, dir string) (*Timeline, error) {
	s, err := sentinelService(dir)
	if err != nil {
		return nil, err
	}
	defer s.Kill()
	if err := s.Start(); err != nil {
		return nil, err
	}
	primary, replica := s.Servers[0], s.Servers[1]
	watchers := s.Servers[2:]
	for _, w := range watchers {
		if err := w.AwaitThat("knows the others", briefly(func(ctx context.Context) error { return watches(ctx, w) })); err != nil {
			return nil, err
		}
	}
	t := newTimeline("Redis 7, primary and replica (`appendfsync always`), three Sentinels")
	a, err := redis.Dial(ctx, primary.Addr)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if err := replica.Freeze(); err != nil {
		return nil, err
	}
	t.note("replica", "stands still (SIGSTOP)")
	for i := range otherWork {
		if _, err := a.Do(ctx, "SET", fmt.Sprint("other-", i), strings.Repeat("x", workSize)); err != nil {
			return nil, err
		}
	}
	t.note("others", "have written %d MB", otherWork*workSize/1_000_000)
	const length = 5 * time.Minute
	asked := time.Now()
	got, err := a.TryLock(ctx, "lock", "A", length)
	if err != nil || !got {
		return nil, fmt.Errorf("A did not get the lock: %w", err)
	}
	t.note("A", "SET lock A NX PX %d: OK, from the primary, which has fsynced it", length.Milliseconds())
	primary.Kill()
	t.note("primary", "is killed (kill -9)")
	if err := replica.Thaw(); err != nil {
		return nil, err
	}
	t.note("replica", "goes on")
	if err := replica.AwaitThat("is promoted", briefly(func(ctx context.Context) error { return promoted(ctx, watchers[0], replica) })); err != nil {
		return nil, err
	}
	t.note("Sentinel", "the replica is the primary now")
	b, err := redis.Dial(ctx, replica.Addr)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if got, err = b.TryLock(ctx, "lock", "B", length); err != nil {
		return nil, err
	}
	left := length - time.Since(asked)
	t.Both = got && left > 0
	if got {
		t.note("B", "SET lock B NX PX %d: OK ← B holds the lock, and so does A, for %.0f s more", length.Milliseconds(), left.Seconds())
	} else {
		t.note("B", "SET lock B NX PX %d: nil, it is held", length.Milliseconds())
	}
	return t, nil
}

// sentinelService returns a primary, its replica, and the sentinels.
func sentinelService(dir string) (*service, error) {
	s, err := redisServers(dir, 2+sentinels, "always")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(s.Servers[0].Addr)
	if err != nil {
		return nil, err
	}
	for _, p := range s.Servers[2:] {
		text := fmt.Sprintf("sentinel monitor locks %s %s %d\nsentinel down-after-milliseconds locks 1000\nsentinel failover-timeout locks 10000\n", host, port, quorum)
		if err := os.WriteFile(filepath.Join(p.Dir, "sentinel.conf"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	s.Servers[0].Args = append(s.Servers[0].Args, "--repl-diskless-sync-delay", "0")
	replica := s.Servers[1]
	replica.Args = append(replica.Args, "--replicaof", host+" "+port)
	replica.Ready = briefly(func(ctx context.Context) error { return replicates(ctx, replica) })
	for _, p := range s.Servers[2:] {
		args := redisCommand(p)
		p.Args = append([]string{args[0], filepath.Join(p.Dir, "sentinel.conf"), "--sentinel"}, args[1:]...)
	}
	return s, nil
}

// ask sends one command on a new connection.
func ask(ctx context.Context, p *servers.Server, args ...string) (string, error) {
	c, err := redis.Dial(ctx, p.Addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Do(ctx, args...)
}

func replicates(ctx context.Context, p *servers.Server) error {
	out, err := ask(ctx, p, "INFO", "replication")
	if err == nil && !strings.Contains(out, "master_link_status:up") {
		err = errors.New("the replica has not copied the primary yet")
	}
	return err
}

// watches returns nil if a sentinel knows the replica and the other sentinels.
func watches(ctx context.Context, p *servers.Server) error {
	out, err := ask(ctx, p, "SENTINEL", "master", "locks")
	if err == nil && !(strings.Contains(out, "num-slaves\n1\n") && strings.Contains(out, fmt.Sprintf("num-other-sentinels\n%d\n", sentinels-1))) {
		err = errors.New("the sentinel does not know everybody yet")
	}
	return err
}

// promoted returns nil if the sentinel sends clients to the replica and the replica accepts writes.
func promoted(ctx context.Context, sentinel, replica *servers.Server) error {
	out, err := ask(ctx, sentinel, "SENTINEL", "get-master-addr-by-name", "locks")
	if err != nil {
		return err
	}
	if strings.ReplaceAll(out, "\n", ":") != replica.Addr {
		return fmt.Errorf("the primary is still at %s", out)
	}
	out, err = ask(ctx, replica, "INFO", "replication")
	if err == nil && !strings.Contains(out, "role:master") {
		err = errors.New("the replica has not been promoted yet")
	}
	return err
}

// ZkgoFailover does the same to a zkgo ensemble.
func ZkgoFailover(ctx context.Context, dir, binary string) (*Timeline, error) {
	s, err := zkgo(dir, binary, 3)
	if err != nil {
		return nil, err
	}
	defer s.Kill()
	if err := s.Start(); err != nil {
		return nil, err
	}
	leader, followers, err := roles(s.Servers)
	if err != nil {
		return nil, err
	}
	still, other := followers[0], followers[1]
	t := newTimeline("zkgo, three servers, `lock.Mutex`")
	a, err := client.Connect(ctx, leader.Addr+","+other.Addr+","+still.Addr, client.WithoutShuffle())
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if _, err := a.Create(ctx, "/other", nil); err != nil {
		return nil, err
	}
	if err := still.Freeze(); err != nil {
		return nil, err
	}
	t.note("follower", "stands still (SIGSTOP)")
	work := make([]byte, workSize)
	for range otherWork {
		if _, err := a.Set(ctx, "/other", work, client.AnyVersion); err != nil {
			return nil, err
		}
	}
	t.note("others", "have written %d MB", otherWork*workSize/1_000_000)
	lease, err := lock.NewMutex(recipes.On(a), "/lock").Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("A did not get the lock: %w", err)
	}
	t.note("A", "Acquire: holds the lock, token 0x%x; a majority has fsynced it", int64(lease.Token()))
	leader.Kill()
	t.note("leader", "is killed (kill -9)")
	if err := still.Thaw(); err != nil {
		return nil, err
	}
	t.note("follower", "goes on")
	b, err := client.Connect(ctx, still.Addr+","+other.Addr, client.WithoutShuffle())
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return t, handOver(ctx, t, lease, lock.NewMutex(recipes.On(b), "/lock"))
}

// handOver makes B try to acquire, then A release, then B acquire.
func handOver(ctx context.Context, t *Timeline, a *lock.Lease, m *lock.Mutex) error {
	second, err := m.TryAcquire(ctx)
	held := a.Err()
	switch {
	case err == nil:
		t.Both = held == nil
		t.note("B", "TryAcquire: B holds the lock; A: %v", held)
		return second.Release(ctx)
	case !errors.Is(err, lock.ErrNotAcquired):
		return err
	}
	t.note("B", "TryAcquire: %v", lock.ErrNotAcquired)
	if held != nil {
		t.note("A", "is told that the lock may be lost: %v", held)
	} else {
		t.note("A", "holds it still: Err() is nil")
	}
	if err := a.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
		return err
	}
	t.note("A", "Release")
	if second, err = m.Acquire(ctx); err != nil {
		return err
	}
	t.note("B", "Acquire: holds the lock, token 0x%x", int64(second.Token()))
	if second.Token() <= a.Token() {
		return fmt.Errorf("the token 0x%x follows 0x%x", int64(second.Token()), int64(a.Token()))
	}
	return second.Release(ctx)
}

// roles finds the leader and the followers.
func roles(all []*servers.Server) (leader *servers.Server, followers []*servers.Server, err error) {
	for _, p := range all {
		switch st, err := p.Status(); {
		case err != nil:
			return nil, nil, err
		case st.Mode == "leader":
			leader = p
		case st.Mode == "follower":
			followers = append(followers, p)
		}
	}
	if leader == nil || len(followers) != len(all)-1 {
		return nil, nil, errors.New("the ensemble has no leader with all its followers")
	}
	return leader, followers, nil
}
