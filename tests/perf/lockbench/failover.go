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
	"github.com/zkgo/zkgo/tests/perf/lockbench/redis"
)

// The failover is the same for both services: the server that is to take over stops for a
// moment, other clients write, a client acquires a lock, the leading server is killed, and
// the other one takes over. Then a second client asks for the lock.

// otherWork is how many writes of workSize bytes other clients make while the server is
// stopped: more than its connection can buffer.
const otherWork, workSize = 40, 900_000

// sentinels watch a Redis primary; quorum of them must agree that it is gone.
const sentinels, quorum = 3, 2

// RedisFailover shows a lock that two clients hold at once, in a primary and a replica
// watched by Sentinel, although the primary fsynced before every reply.
func RedisFailover(ctx context.Context, dir string) (*Timeline, error) {
	s, err := sentinelService(dir)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.start(); err != nil {
		return nil, err
	}
	primary, replica := s.procs[0], s.procs[1]
	watchers := s.procs[2:]
	for _, w := range watchers {
		if err := w.await(func(ctx context.Context) error { return watches(ctx, w) }); err != nil {
			return nil, err
		}
	}
	t := newTimeline("Redis 7, primary and replica (`appendfsync always`), three Sentinels")
	a, err := redis.Dial(ctx, primary.addr)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if err := freeze(replica.cmd.Process); err != nil {
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
	primary.kill()
	t.note("primary", "is killed (kill -9)")
	if err := thaw(replica.cmd.Process); err != nil {
		return nil, err
	}
	t.note("replica", "goes on")
	if err := replica.await(func(ctx context.Context) error { return promoted(ctx, watchers[0], replica) }); err != nil {
		return nil, err
	}
	t.note("Sentinel", "the replica is the primary now")
	b, err := redis.Dial(ctx, replica.addr)
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
	host, port, err := net.SplitHostPort(s.procs[0].addr)
	if err != nil {
		return nil, err
	}
	for _, p := range s.procs[2:] {
		text := fmt.Sprintf("sentinel monitor locks %s %s %d\nsentinel down-after-milliseconds locks 1000\nsentinel failover-timeout locks 10000\n", host, port, quorum)
		if err := os.WriteFile(filepath.Join(p.dir, "sentinel.conf"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	plain := s.launch
	s.launch = func(p *proc, i int) []string {
		switch i {
		case 0:
			return append(plain(p, i), "--repl-diskless-sync-delay", "0")
		case 1:
			return append(plain(p, i), "--replicaof", host+" "+port)
		}
		args := redisCommand(p)
		return append([]string{args[0], filepath.Join(p.dir, "sentinel.conf"), "--sentinel"}, args[1:]...)
	}
	s.ready = func(ctx context.Context, p *proc) error {
		if p == s.procs[1] {
			return replicates(ctx, p)
		}
		return pong(ctx, p)
	}
	return s, nil
}

// ask sends one command on a new connection.
func ask(ctx context.Context, p *proc, args ...string) (string, error) {
	c, err := redis.Dial(ctx, p.addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Do(ctx, args...)
}

func replicates(ctx context.Context, p *proc) error {
	out, err := ask(ctx, p, "INFO", "replication")
	if err == nil && !strings.Contains(out, "master_link_status:up") {
		err = errors.New("the replica has not copied the primary yet")
	}
	return err
}

// watches returns nil if a sentinel knows the replica and the other sentinels.
func watches(ctx context.Context, p *proc) error {
	out, err := ask(ctx, p, "SENTINEL", "master", "locks")
	if err == nil && !(strings.Contains(out, "num-slaves\n1\n") && strings.Contains(out, fmt.Sprintf("num-other-sentinels\n%d\n", sentinels-1))) {
		err = errors.New("the sentinel does not know everybody yet")
	}
	return err
}

// promoted returns nil if the sentinel sends clients to the replica and the replica takes
// writes.
func promoted(ctx context.Context, sentinel, replica *proc) error {
	out, err := ask(ctx, sentinel, "SENTINEL", "get-master-addr-by-name", "locks")
	if err != nil {
		return err
	}
	if strings.ReplaceAll(out, "\n", ":") != replica.addr {
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
	defer s.stop()
	if err := s.start(); err != nil {
		return nil, err
	}
	leader, followers, err := roles(ctx, s.procs)
	if err != nil {
		return nil, err
	}
	still, other := followers[0], followers[1]
	t := newTimeline("zkgo, three servers, `lock.Mutex`")
	a, err := client.Connect(ctx, leader.addr+","+other.addr+","+still.addr, client.WithoutShuffle())
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if _, err := a.Create(ctx, "/other", nil); err != nil {
		return nil, err
	}
	if err := freeze(still.cmd.Process); err != nil {
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
	leader.kill()
	t.note("leader", "is killed (kill -9)")
	if err := thaw(still.cmd.Process); err != nil {
		return nil, err
	}
	t.note("follower", "goes on")
	b, err := client.Connect(ctx, still.addr+","+other.addr, client.WithoutShuffle())
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
func roles(ctx context.Context, procs []*proc) (*proc, []*proc, error) {
	var leader *proc
	var followers []*proc
	for _, p := range procs {
		out, err := fourLetters(ctx, p.addr, "srvr")
		switch {
		case err != nil:
			return nil, nil, err
		case strings.Contains(out, "Mode: leader"):
			leader = p
		case strings.Contains(out, "Mode: follower"):
			followers = append(followers, p)
		}
	}
	if leader == nil || len(followers) != len(procs)-1 {
		return nil, nil, errors.New("the ensemble has no leader with all its followers")
	}
	return leader, followers, nil
}
