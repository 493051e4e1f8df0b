package zktest

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
)

// addressVariable is the environment variable with the addresses of an ensemble for the
// tests.
const addressVariable = "ZKTEST_ADDR"

// outside is an ensemble that the tests didn't start, e.g. of ZooKeeper. A test can only see
// and change znodes. One test at a time uses it; the test begins with an empty tree, and we
// delete the znodes that it leaves.
type outside struct {
	addrs  string
	client *client.Client
}

// outsideTurn contains one element while a test of this process uses the ensemble.
var outsideTurn = make(chan struct{}, 1)

// outsideNow returns the ensemble that the environment names, or nil.
func outsideNow(t TB, o options) *outside {
	t.Helper()
	addrs := os.Getenv(addressVariable)
	if addrs == "" {
		return nil
	}
	if len(o.configure) > 0 {
		skip(t, "a server with its own configuration")
	}
	if strings.Contains(addrs, "/") {
		t.Fatalf("zktest: %s=%s: want host:port,host:port; a path is not possible, because not every client has a chroot", addressVariable, addrs)
	}
	late := time.NewTimer(outsideTurnPatience)
	defer late.Stop()
	select {
	case outsideTurn <- struct{}{}:
	case <-late.C:
		t.Fatalf("zktest: another test has used %s=%s for %v; a test may call Run once", addressVariable, addrs, outsideTurnPatience)
	}
	free := sync.OnceFunc(func() { <-outsideTurn })
	t.Cleanup(free)
	c := connectClient(t, addrs, nil)
	x := &outside{addrs, c}
	if left := x.children("/"); len(left) > 0 {
		free()
		t.Fatalf("zktest: %s=%s: the tree has the znodes %q, and tests delete all znodes: use an ensemble that is only for tests, and go test -p 1 for several packages",
			addressVariable, addrs, left)
	}
	t.Cleanup(func() {
		t.Helper()
		if t.Failed() {
			t.Logf("zktest: the znodes at the end:\n%s", x.dump())
		}
		if err := x.empty(); err != nil {
			t.Errorf("zktest: %s=%s: the znodes of the test could not be deleted: %v", addressVariable, addrs, err)
		}
	})
	return x
}

const outsideTurnPatience = 10 * time.Minute

// skip skips a test that needs a feature of servers in this process.
func skip(t TB, what string) {
	t.Helper()
	if s, can := t.(interface{ Skipf(string, ...any) }); can {
		s.Skipf("zktest: the test needs %s, which the ensemble of %s doesn't have", what, addressVariable)
	}
	t.Fatalf("zktest: the test needs %s, which the ensemble of %s doesn't have", what, addressVariable)
}

// inProcess skips the test if its ensemble isn't in this process.
func (s *Server) inProcess(what string) {
	if s.outside == nil {
		return
	}
	s.t.Helper()
	skip(s.t, what)
}

// Features that only servers in this process have.
const (
	needsFaults  = "faults"
	needsClock   = "the servers' clock"
	needsInsight = "a look at the servers' sessions, watches and requests"
	needsServer  = "a server in this process"
)

func (x *outside) ctx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (x *outside) get(path string) (data []byte, st client.Stat, err error) {
	ctx, cancel := x.ctx()
	defer cancel()
	return x.client.Get(ctx, path)
}

// children returns the sorted names of the children, without /zookeeper.
func (x *outside) children(path string) []string {
	ctx, cancel := x.ctx()
	defer cancel()
	names, _, err := x.client.Children(ctx, path)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return path == "/" && name == "zookeeper" })
}

// set creates or changes a znode, and creates its missing ancestors.
func (x *outside) set(path, data string) error {
	ctx, cancel := x.ctx()
	defer cancel()
	for i := range path {
		if i > 0 && path[i] == '/' {
			if _, err := x.client.Create(ctx, path[:i], nil); err != nil && !errors.Is(err, client.ErrNodeExists) {
				return err
			}
		}
	}
	if path != "/" {
		if _, err := x.client.Create(ctx, path, []byte(data)); !errors.Is(err, client.ErrNodeExists) {
			return err
		}
	}
	_, err := x.client.Set(ctx, path, []byte(data), client.AnyVersion)
	return err
}

// remove deletes a znode and its subtree, if it exists.
func (x *outside) remove(path string) error {
	for _, name := range x.children(path) {
		if err := x.remove(strings.TrimSuffix(path, "/") + "/" + name); err != nil {
			return err
		}
	}
	if path == "/" {
		return nil
	}
	ctx, cancel := x.ctx()
	defer cancel()
	if err := x.client.Delete(ctx, path, client.AnyVersion); !errors.Is(err, client.ErrNoNode) {
		return err
	}
	return nil
}

// empty deletes all znodes. The sessions of the test's other clients may still be ending, so
// we repeat it for a while.
func (x *outside) empty() (err error) {
	poll(func() bool {
		err = x.remove("/")
		return err == nil && len(x.children("/")) == 0
	})
	return err
}

// dump returns the tree as Server.Dump does.
func (x *outside) dump() string {
	var b strings.Builder
	b.WriteString("/")
	x.dumpBelow(&b, "/", 0)
	return b.String()
}

func (x *outside) dumpBelow(b *strings.Builder, path string, depth int) {
	if data, st, err := x.get(path); err == nil {
		dumpNode(b, data, st.EphemeralOwner)
	}
	for _, name := range x.children(path) {
		b.WriteString(strings.Repeat("  ", depth+1) + name)
		x.dumpBelow(b, strings.TrimSuffix(path, "/")+"/"+name, depth+1)
	}
}

// outsideNode returns a znode, and fails the test if it doesn't exist.
func (s *Server) outsideNode(path string) ([]byte, client.Stat) {
	s.t.Helper()
	data, st, err := s.outside.get(path)
	if err != nil {
		s.fatalf("%s: %v; there are:\n%s", path, err, s.Dump())
	}
	return data, st
}

// list returns the addresses.
func (x *outside) list() []string { return strings.Split(x.addrs, ",") }

// dial connects to the first server that accepts.
func (x *outside) dial() (conn net.Conn, err error) {
	for _, addr := range x.list() {
		if conn, err = net.DialTimeout("tcp", addr, patience); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// inProcess is Server.inProcess.
func (c *Cluster) inProcess(what string) {
	if c.outside == nil {
		return
	}
	c.t.Helper()
	skip(c.t, what)
}
