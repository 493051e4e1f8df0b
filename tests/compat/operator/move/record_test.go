package move

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// record names the directory to record and the release to record from. The tests of
// internal/offline/zkfiles read the recorded directories. For the jars in ./lib of release
// 3.4.14:
//
//	ZKGO_LIVE=1 ZKGO_REQUIRE=1 go test -run Record ./tests/compat/operator/move -record 3.4.14=$PWD/lib
var record = flag.String("record", "", "`release=directory` with jars, to record what it writes")

// TestRecord makes a release write snapshots and logs and records the state that it shows. Its
// client can talk to a ZooKeeper 3.4 too.
func TestRecord(t *testing.T) {
	need(t)
	release, lib, ok := strings.Cut(*record, "=")
	if !ok {
		return // the recorded ones are in internal/offline/zkfiles/testdata
	}
	o := oracle.Options{Lib: lib, Config: []string{"extendedTypesEnabled=true", "snapCount=12", "preAllocSize=1", "maxSessionTimeout=3600000"}}
	o.JVM = []string{"-Dzookeeper.snapCount=12", "-Dzookeeper.preAllocSize=1", "-Dzookeeper.DigestAuthenticationProvider.superDigest=" + superDigest()}
	srv := oracle.Start(t, o)
	open := func() *zk.Conn {
		c, _, err := zk.Connect([]string{srv.Addr()}, time.Hour, zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, other := open(), open()
	defer c.Close()
	must.Do(t, c.AddAuth("digest", []byte("super:secret")))
	write(t, c, other, !strings.HasPrefix(release, "3.4"))
	other.Close()
	var expect strings.Builder
	show(t, c, "/", &expect)
	srv.Stop()
	target := filepath.Join("..", "..", "..", "..", "internal", "offline", "zkfiles", "testdata", release)
	must.Do(t, os.RemoveAll(target))
	keep(t, dataDir(srv), target)
	must.Do(t, os.WriteFile(filepath.Join(target, "expect.txt"), []byte(expect.String()), 0o600))
}

func write(t *testing.T, c, other *zk.Conn, modern bool) {
	t.Helper()
	all := zk.WorldACL(zk.PermAll)
	create := func(c *zk.Conn, path string, data []byte, flags int32, acl []zk.ACL) {
		t.Helper()
		if _, err := c.Create(path, data, flags, acl); err != nil {
			t.Fatal(path, err)
		}
	}
	create(c, "/a", []byte("data of a"), 0, all)
	create(c, "/a/null", nil, 0, all)
	create(c, "/a/empty", []byte{}, 0, zk.DigestACL(zk.PermAll, "bob", "pw"))
	create(c, "/a/größe", []byte("\x00\xff"), 0, []zk.ACL{{Perms: 1, Scheme: "world", ID: "anyone"}, {Perms: 31, Scheme: "ip", ID: "127.0.0.1"}})
	for range 3 {
		create(c, "/a/s-", nil, zk.FlagSequence, all)
	}
	create(c, "/a/mine", []byte("e"), zk.FlagEphemeral, all)
	create(other, "/a/others", nil, zk.FlagEphemeral, all)
	if modern {
		must.Get(c.CreateContainer("/box", nil, zk.FlagContainer, all))(t)
		must.Get(c.CreateTTL("/ttl", []byte("t"), zk.FlagTTL, all, time.Hour))(t)
	}
	must.Get(c.Multi(&zk.CreateRequest{Path: "/m", Acl: all}, &zk.CreateRequest{Path: "/m/1", Acl: all, Data: []byte("1")}, &zk.SetDataRequest{Path: "/m", Data: []byte("x"), Version: 0},
		&zk.CheckVersionRequest{Path: "/a", Version: 0}, &zk.DeleteRequest{Path: "/m/1", Version: 0}))(t)
	if _, err := c.Multi(&zk.CreateRequest{Path: "/n", Acl: all}, &zk.CheckVersionRequest{Path: "/a", Version: 9}); err == nil {
		t.Fatal("a multi that must fail")
	}
	must.Get(c.SetACL("/m", zk.WorldACL(zk.PermRead|zk.PermCreate), -1))(t)
	create(c, "/zookeeper/quota/a", nil, 0, all)
	create(c, "/zookeeper/quota/a/zookeeper_limits", []byte("count=99,bytes=-1"), 0, all)
	create(c, "/zookeeper/quota/a/zookeeper_stats", []byte("count=0,bytes=0"), 0, all)
	for i := range 12 {
		must.Get(c.Set("/a", fmt.Appendf(nil, "data %d", i), int32(i)))(t)
	}
	for _, path := range []string{"/a/s-0000000003", "/a/null"} {
		must.Do(t, c.Delete(path, -1))
	}
}

// show writes a line for every znode, with the fields that our tests compare.
func show(t *testing.T, c *zk.Conn, path string, out *strings.Builder) {
	t.Helper()
	data, s, err := c.Get(path)
	if err != nil {
		t.Fatal(path, err)
	}
	acl, _, err := c.GetACL(path)
	if err != nil {
		t.Fatal(path, err)
	}
	fmt.Fprintf(out, "%q %q czxid=%x mzxid=%x pzxid=%x ctime=%d mtime=%d version=%d cversion=%d aversion=%d owner=%x length=%d children=%d %v\n",
		path, data, s.Czxid, s.Mzxid, s.Pzxid, s.Ctime, s.Mtime, s.Version, s.Cversion, s.Aversion, uint64(s.EphemeralOwner), s.DataLength, s.NumChildren, acl)
	children, _, err := c.Children(path)
	if err != nil {
		t.Fatal(path, err)
	}
	slices.Sort(children)
	for _, name := range children {
		if child := strings.TrimRight(path, "/") + "/" + name; child != "/zookeeper/config" {
			show(t, c, child, out)
		}
	}
}

// keep copies the files, and logs without most of their trailing zeros.
func keep(t *testing.T, data, target string) {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(data, "version-2", "*.*")))(t)
	must.Do(t, os.MkdirAll(filepath.Join(target, "version-2"), 0o750))
	for _, f := range files {
		b := must.Get(os.ReadFile(f))(t)
		if strings.HasPrefix(filepath.Base(f), "log.") {
			b = append(bytes.TrimRight(b, "\x00"), make([]byte, 64)...)
		}
		must.Do(t, os.WriteFile(filepath.Join(target, "version-2", filepath.Base(f)), b, 0o600))
	}
}
