package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/faultnet"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestFenceAndProof checks a real ensemble before a cutover, fences it under load, and proves
// its last transaction. Clients reach the servers through ports that the test closes, like a load
// balancer's.
func TestFenceAndProof(t *testing.T) {
	t.Parallel()
	need(t)
	_, lib, _ := strings.Cut(*mirrorLib, "=")
	o := options("tickTime=1000")
	if newer := !strings.HasPrefix(release(), "3.4"); newer {
		o = options("tickTime=1000", "localSessionsEnabled=true", "localSessionsUpgradingEnabled=true")
	}
	o.Lib = lib
	servers := oracle.Ensemble(t, 3, o)
	front := faultnet.New(1)
	t.Cleanup(front.Close)
	var clients []string
	for _, s := range servers {
		port := must.Get(front.PortFrom("clients", fmt.Sprint("zk", s.ID), "127.0.0.1", s.Addr()))(t)
		clients = append(clients, port.Addr())
	}
	old := must.Get(mirror.Describe(filepath.Join(servers[0].Dir, "zoo.cfg"), strings.Join(clients, ",")))(t)
	r := join(t, servers)
	must.Do(t, old.AddMembers(r.Members()))
	if len(old.Servers) != 3 || old.Servers[2].ID != 3 || old.Servers[2].Client != clients[2] {
		t.Errorf("%+v", old.Servers)
	}
	acked := writeUntilFenced(t, clients)
	r.await("the load", func(h *heard) bool { return len(h.txns) > 50 })
	r.preflight(old)

	f := &mirror.Fence{Addrs: old.ClientAddrs(), Timeout: patience} // the servers may be slow
	must.Do(t, f.Arm(ctx(t)))
	defer f.Disarm()
	open(t, f, "still answers")
	for _, s := range servers {
		front.Down(fmt.Sprint("zk", s.ID))
	}
	open(t, f, "still serves existing ones")
	for _, s := range servers {
		front.Reset("clients", fmt.Sprint("zk", s.ID))
	}
	must.Do(t, f.Closed(ctx(t)))
	if left := f.Unverified(); len(left) > 0 {
		t.Errorf("unverified: %q", left)
	}
	known := acked()

	r.withoutAQuorum(servers)
	r = join(t, servers)
	last := must.Get(r.last.Prove(ctx(t), r, mine))(t)
	if at := r.heard.now().Zxid; at != last || last < known {
		t.Errorf("the last transaction is %#x, the mirror is at %#x, and clients were told of %#x", last, at, known)
	}
	must.Do(t, wait.Success(patience, "every server to be at the proved zxid", func() error {
		for _, s := range servers {
			if status, err := process.Ask(s.Addr(), time.Second); err != nil || status.Zxid != last {
				return fmt.Errorf("server %d is at %#x, want %#x (%w)", s.ID, status.Zxid, last, err)
			}
		}
		return nil
	}))
	leak := gozk(t, servers[0].Addr())
	must.Get(leak.Create("/too late", nil, 0, zk.WorldACL(zk.PermAll)))(t)
	if err := <-r.ended; !errors.Is(err, mirror.ErrSealed) {
		t.Errorf("a transaction after the last one: %v", err)
	}
	end := must.Get(process.Ask(leaderOf(t, servers).Addr(), patience))(t).Zxid
	stopAll(t, servers, old)
	checkLogs(t, servers, old, last, end)
}

// checkLogs reads the logs of the stopped servers with ZooKeeper's own tool, which reads the logs
// of all releases. They end with a transaction after the one that was proved.
func checkLogs(t *testing.T, servers []*oracle.Server, old *mirror.Old, last, end int64) {
	t.Helper()
	root := filepath.Dir(servers[0].Dir)
	h := mirror.Hook{
		Command: fmt.Sprintf("cd %s/server{id}; [ -e newest ] || java -cp '%s/*' org.apache.zookeeper.server.persistence.TxnLogToolkit $(ls -t data/version-2/log.* | head -1) | grep zxid > newest; cat newest", root, must.Get(oracle.Dir())(t)),
		Timeout: patience,
	}
	if err := mirror.CheckLogs(ctx(t), h, old, last); err == nil || !strings.Contains(err.Error(), "has transaction") {
		t.Errorf("up to %#x: %v", last, err)
	}
	must.Do(t, mirror.CheckLogs(ctx(t), h, old, end))
}

// open checks that the fence isn't closed at any address.
func open(t *testing.T, f *mirror.Fence, want string) {
	t.Helper()
	must.Do(t, wait.Success(patience, want, func() error {
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := f.Closed(short)
		if !errors.Is(err, mirror.ErrOpen) {
			t.Fatal("the fence is closed:", err)
		}
		if strings.Count(err.Error(), want) == len(f.Addrs) {
			return nil
		}
		return err
	}))
}

// writeUntilFenced writes through all ports. The result ends that, and returns the newest zxid
// that was acknowledged to a client.
func writeUntilFenced(t *testing.T, addrs []string) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var known int64
	var done sync.WaitGroup
	var clients []*zk.Conn
	for i, addr := range addrs {
		c := gozk(t, addr)
		clients = append(clients, c)
		path := fmt.Sprint("/w", i)
		must.Get(c.Create(path, nil, 0, zk.WorldACL(zk.PermAll)))(t)
		done.Go(func() {
			for ctx.Err() == nil {
				if stat, err := c.Set(path, nil, -1); err == nil {
					mu.Lock()
					known = max(known, stat.Mzxid)
					mu.Unlock()
				}
			}
		})
		t.Cleanup(cancel)
	}
	return func() int64 {
		cancel()
		for _, c := range clients {
			c.Close()
		}
		done.Wait()
		return known
	}
}

// preflight checks the findings for a real ensemble, and that a server that is down blocks.
func (r *requester) preflight(old *mirror.Old) {
	r.t.Helper()
	modern, digests := !strings.HasPrefix(release(), "3.4"), !strings.HasPrefix(release(), "3.4") && !strings.HasPrefix(release(), "3.5")
	r.await("a ping", func(h *heard) bool {
		return !h.status.Heard.IsZero() && (h.status.Compared > 0 || !digests)
	})
	p := &mirror.Preflight{Old: old, Mirror: r.heard.now(), ACLs: maps.All(r.heard.acls), Timeout: patience}
	found := p.Check(ctx(r.t))
	var text strings.Builder
	must.Do(r.t, found.Write(&text))
	r.t.Log("\n" + text.String())
	if found.Blocked() || strings.Contains(text.String(), "local sessions: ") != modern || strings.Contains(text.String(), "digests of the whole tree matched") != digests ||
		!strings.Contains(text.String(), "ACL schemes: this server has every scheme") || strings.Count(text.String(), "connections: ") != 3 {
		r.t.Error("see above")
	}
	down := &mirror.Old{Servers: append([]mirror.OldServer{{ID: 9, Client: freeAddr(r.t)}}, old.Servers...)}
	p.Old = down
	if found := p.Check(ctx(r.t)); !found.Blocked() || !strings.Contains(found[0].String(), "server 9") {
		r.t.Errorf("%+v", found)
	}
}

// withoutAQuorum freezes the followers. The leader still answers a sync, so that proves nothing,
// but it can't commit a transaction.
func (r *requester) withoutAQuorum(servers []*oracle.Server) {
	r.t.Helper()
	var frozen []*oracle.Server
	leader := leaderOf(r.t, servers)
	for _, s := range servers {
		if s != leader {
			must.Do(r.t, s.Freeze())
			frozen = append(frozen, s)
		}
	}
	path := body(&proto.SyncRequest{Path: "/"})
	must.Do(r.t, r.Request(learner.Request{Session: mine, Cxid: 99, Op: proto.OpSync, Body: path}))
	r.await("a sync", func(h *heard) bool { return h.syncs[key{mine, 99}] != 0 })
	short, cancel := context.WithTimeout(r.t.Context(), 2*time.Second)
	defer cancel()
	if zxid, err := r.last.Prove(short, r, mine); !errors.Is(err, context.DeadlineExceeded) {
		r.t.Errorf("a leader without a quorum proves %#x: %v", zxid, err)
	}
	for _, s := range frozen {
		must.Do(r.t, s.Thaw())
	}
	must.Do(r.t, r.Close())
	leaderOf(r.t, servers)
}

// stopAll stops the servers with a command of the operator, which closes their own ports.
func stopAll(t *testing.T, servers []*oracle.Server, old *mirror.Old) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range servers {
		must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(s.ID)), fmt.Append(nil, s.PID()), 0o600))
	}
	f := new(mirror.Fence)
	for _, s := range servers {
		f.Addrs = append(f.Addrs, s.Addr())
	}
	must.Do(t, f.Arm(ctx(t)))
	defer f.Disarm()
	must.Do(t, mirror.Hook{Command: `kill -9 "$(cat '` + dir + `/{id}')"`}.Run(ctx(t), old.Servers))
	must.Do(t, f.Closed(ctx(t)))
	if left := f.Unverified(); len(left) > 0 {
		t.Errorf("unverified: %q", left)
	}
}
