package move

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// patience bounds every wait; the tests measure no times.
const patience = 90 * time.Second

// need skips tests with the real ZooKeeper unless the environment asks for it.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("ZKGO_LIVE") != "1" || os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("runs the real ZooKeeper; set ZKGO_REQUIRE=1 and ZKGO_LIVE=1")
	}
	oracle.Need(t)
}

// superDigest lets the tests read znodes that no other client may read.
func superDigest() string { return "super:" + digestOf("super:secret") }

// digestOf returns the digest of a user and password in the scheme digest.
func digestOf(login string) string {
	sum := sha1.Sum([]byte(login))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// options returns the options of a ZooKeeper that supports every kind of znode.
func options(lines ...string) oracle.Options {
	return oracle.Options{
		Config: append([]string{"extendedTypesEnabled=true", "tickTime=2000", "maxSessionTimeout=600000"}, lines...),
		JVM:    []string{"-Dzookeeper.DigestAuthenticationProvider.superDigest=" + superDigest(), "-Dzookeeper.digest.enabled=true"},
	}
}

// dataDir returns the data directory of a server of package oracle.
func dataDir(s *oracle.Server) string { return filepath.Join(s.Dir, "data") }

func dir(path string) zkfiles.Dir { return zkfiles.Dir{FS: os.DirFS(path), Name: path} }

// ctx returns a context that ends with the test's patience.
func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return c
}

func connect(t *testing.T, addr string, opts ...client.Option) *client.Client {
	t.Helper()
	opts = append([]client.Option{client.WithSessionTimeout(2 * time.Minute), client.WithoutShuffle(), client.WithMaxReply(64 << 20)}, opts...)
	c := must.Get(client.Connect(ctx(t), addr, opts...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// reader returns a client that may read everything.
func reader(t *testing.T, addr string) *client.Client {
	t.Helper()
	return connect(t, addr, client.WithAuth("digest", []byte("super:secret")))
}

// start runs zkgo on dir until the test ends or stop is called.
func start(t *testing.T, dir, addr string) (stop func(), s *server.Server) {
	t.Helper()
	s = must.Get(server.Start(ctx(t), config(dir, addr)))(t)
	t.Cleanup(func() { _ = s.Close() })
	select {
	case <-s.Ready():
	case <-ctx(t).Done():
		t.Fatal("zkgo does not serve")
	}
	return func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}, s
}

func config(dir, addr string) server.Config {
	return server.Config{
		DataDir: dir, ClientAddr: addr, Znodes: server.Znodes{ExtendedTypes: true}, Auth: server.Auth{SuperDigest: superDigest()}, FourLetterWords: []string{"*"},
		Limits: server.Limits{MaxClientCnxns: -1}, MaxSessionTimeout: 10 * time.Minute,
	}
}

// imported imports src into a new directory and returns it.
func imported(t *testing.T, src zkfiles.Source) (dir string, r *migrate.Imported) {
	t.Helper()
	dir = t.TempDir()
	r = must.Get(migrate.Import(config(dir, ""), src))(t)
	for _, w := range r.Warnings {
		t.Log(w)
	}
	return dir, r
}

// picture returns everything that a client sees, by path, except the list of servers, which
// differs between the two.
func picture(t *testing.T, c *client.Client) map[string]string {
	t.Helper()
	all := make(map[string]string)
	var walk func(path string)
	walk = func(path string) {
		data, stat, err := c.Get(ctx(t), path)
		if err != nil {
			t.Fatal(err)
		}
		acl, _, err := c.GetACL(ctx(t), path)
		if err != nil {
			t.Fatal(err)
		}
		children, _, err := c.Children(ctx(t), path)
		if err != nil {
			t.Fatal(err)
		}
		kind := "null"
		if data != nil {
			kind = fmt.Sprintf("%q", data)
			if len(data) > 200 {
				kind = fmt.Sprintf("%d bytes, sha1 %x", len(data), sha1.Sum(data))
			}
		}
		all[path] = fmt.Sprintf("%s %+v %v", kind, stat, acl)
		for _, name := range children {
			if child := strings.TrimRight(path, "/") + "/" + name; child != "/zookeeper/config" {
				walk(child)
			}
		}
	}
	walk("/")
	return all
}

// same compares two pictures.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	bad := 0
	paths := make([]string, 0, len(want))
	for path := range want {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		if got[path] != want[path] {
			if bad++; bad <= 5 {
				t.Errorf("%s: %s\n got %s\nwant %s", what, path, got[path], want[path])
			}
		}
	}
	for path := range got {
		if _, is := want[path]; !is {
			if bad++; bad <= 5 {
				t.Errorf("%s: %s is too much: %s", what, path, got[path])
			}
		}
	}
	if bad > 5 {
		t.Errorf("%s: %d differences", what, bad)
	}
}

// everyKind creates znodes of every kind. c keeps the ephemeral ones.
func everyKind(t *testing.T, c *client.Client) {
	t.Helper()
	create := func(path string, data []byte, opts ...client.CreateOption) {
		t.Helper()
		must.Get(c.Create(ctx(t), path, data, opts...))(t)
	}
	acl := func(perms proto.Perms, scheme, id string) client.ACL {
		return client.ACL{Perms: perms, ID: client.ID{Scheme: scheme, ID: id}}
	}
	create("/kinds", []byte("root of them"))
	create("/kinds/null", nil)
	create("/kinds/empty", []byte{})
	create("/kinds/big", []byte(strings.Repeat("0123456789", 90_000)))
	create("/kinds/größe", []byte("\x00\xff"))
	for range 3 {
		create("/kinds/seq-", nil, client.Sequential)
	}
	create("/kinds/ephemeral", []byte("mine"), client.Ephemeral)
	create("/kinds/ephemeral-", nil, client.Ephemeral, client.Sequential)
	create("/kinds/container", nil, client.Container)
	create("/kinds/container/child", nil)
	create("/kinds/ttl", []byte("for a while"), client.WithTTL(time.Hour))
	create("/kinds/ttl-", nil, client.WithTTL(24*time.Hour), client.Sequential)
	create("/kinds/digest", nil, client.WithACL(acl(31, "digest", "bob:abcdefghijklmnopqrstuvwxyz0=")))
	create("/kinds/ip", nil, client.WithACL(acl(31, "ip", "127.0.0.0/8"), acl(1, "world", "anyone")))
	create("/kinds/readonly", nil, client.WithACL(acl(1, "world", "anyone")))
	create("/kinds/relisted", nil)
	must.Get(c.SetACL(ctx(t), "/kinds/relisted", []client.ACL{acl(3, "world", "anyone"), acl(31, "digest", "eve:x=")}, -1))(t)
	must.Get(c.Set(ctx(t), "/kinds/empty", []byte("not any more"), -1))(t)
	must.Get(c.Set(ctx(t), "/kinds/empty", nil, -1))(t)
	create("/kinds/gone", nil)
	must.Do(t, c.Delete(ctx(t), "/kinds/gone", -1))
	must.Get(c.Multi(ctx(t), client.CreateOp("/kinds/multi", nil), client.CreateOp("/kinds/multi/a-", []byte("1"), client.Sequential),
		client.CreateOp("/kinds/multi/b", nil, client.Container), client.CreateOp("/kinds/multi/c", nil, client.Ephemeral),
		client.CreateOp("/kinds/multi/ttl", nil, client.WithTTL(time.Hour)),
		client.SetOp("/kinds/multi", []byte("2"), 0), client.CheckOp("/kinds", 0), client.DeleteOp("/kinds/multi/b", -1)))(t)
	if _, err := c.Multi(ctx(t), client.CreateOp("/kinds/never", nil), client.CheckOp("/kinds", 77)); err == nil {
		t.Fatal("a multi that must fail")
	}
	if _, err := c.Create(ctx(t), "/kinds", nil); err == nil {
		t.Fatal("a create that must fail")
	}
	create("/zookeeper/quota/kinds", nil)
	create("/zookeeper/quota/kinds/zookeeper_limits", []byte("count=1000,bytes=-1"))
	create("/zookeeper/quota/kinds/zookeeper_stats", []byte("count=0,bytes=0"))
	create("/kinds/counted", []byte("by the quota"))
}

// empty removes ZooKeeper's files.
func empty(t *testing.T, dir string) {
	t.Helper()
	must.Do(t, os.RemoveAll(filepath.Join(dir, "version-2")))
}
