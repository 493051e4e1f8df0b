package zktest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestLookInside(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/app/config/db": "host=a", "/app": "x", "/b": ""})
	zs.Set("/app/config/db", "host=b")
	c := connect(t, zs)
	create(t, c, "/app/lock", "", zk.FlagEphemeral)
	if got := zs.Get("/app/config/db"); got != "host=b" {
		t.Errorf("Get: %q", got)
	}
	if st := zs.Stat("/app/config/db"); st.Version != 1 {
		t.Errorf("Stat: %+v", st)
	}
	if got := zs.Children("/app"); !slices.Equal(got, []string{"config", "lock"}) {
		t.Errorf("Children: %q", got)
	}
	if got, want := zs.Ephemerals(), map[string]int64{"/app/lock": c.SessionID()}; !maps.Equal(got, want) {
		t.Errorf("Ephemerals: %v", got)
	}
	if got := zs.Sessions(); len(got) != 1 || got[0].ID != c.SessionID() || !got[0].Connected || got[0].Addr == "" {
		t.Errorf("Sessions: %+v", got)
	}
	dump := zs.Dump()
	for _, want := range []string{"/\n", "  app = \"x\"\n", "    config\n", "      db = \"host=b\"\n", "    lock (ephemeral of 0x", "  b\n"} {
		if !strings.Contains(dump, want) {
			t.Errorf("Dump lacks %q:\n%s", want, dump)
		}
	}
	zs.Delete("/")
	if got := zs.Children("/"); !slices.Equal(got, []string{"zookeeper"}) {
		t.Errorf("Delete left %q", got)
	}
}

// Set should make a normal write that triggers watches but ignores ACLs.
func TestSetFiresWatchesAndIgnoresACLs(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	if _, err := c.Create("/mine", nil, 0, zk.DigestACL(zk.PermAll, "u", "p")); err != nil {
		t.Fatal(err)
	}
	_, _, ch, err := c.ExistsW("/a/b")
	if err != nil {
		t.Fatal(err)
	}
	zs.Seed(map[string]string{"/a/b": "1", "/mine/c": "2", "/mine": "3"})
	if e := <-ch; e.Type != zk.EventNodeCreated || e.Path != "/a/b" {
		t.Errorf("%+v", e)
	}
	if zs.Get("/mine") != "3" || zs.Get("/mine/c") != "2" {
		t.Error(zs.Dump())
	}
}

func TestWatchesAndWaiting(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	done := make(chan error, 1)
	go func() {
		_, _, ch, err := c.ChildrenW("/")
		if err == nil {
			<-ch
			_, err = c.Create("/seen", nil, 0, zk.WorldACL(zk.PermAll))
		}
		done <- err
	}()
	zs.WaitForWatch("/", zktest.ChildWatch)
	if got := zs.Watches(); len(got) != 1 || got[0] != (zktest.Watch{Path: "/", Kind: zktest.ChildWatch, Session: c.SessionID()}) {
		t.Errorf("%+v", got)
	}
	zs.Set("/a", "")
	zs.WaitExists("/seen")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := zs.Watches(); len(got) != 0 {
		t.Errorf("left: %+v", got)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- c.Delete("/seen", -1) }()
	zs.WaitGone("/seen")
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c, r := connect(t, zs), rawConnect(t, zs)
	create(t, c, "/a", "", 0)
	r.must(proto.OpCreate2, &proto.CreateRequest{Path: "/a/b", ACL: proto.OpenACL()})
	for range 3 {
		if _, _, err := c.Get("/a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Multi(&zk.CheckVersionRequest{Path: "/a"}, &zk.DeleteRequest{Path: "/a/b", Version: -1}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		n int
		m zktest.Match
	}{
		{3, zktest.Match{Op: proto.OpGetData}}, {3, zktest.Match{Op: proto.OpGetData, Path: "/a"}},
		{0, zktest.Match{Op: proto.OpGetData, Path: "/b"}}, {2, zktest.Match{Op: proto.OpCreate}},
		{1, zktest.Match{Op: proto.OpCreate2}}, {1, zktest.Match{Op: proto.OpCreate, Session: r.session}},
		{1, zktest.Match{Op: proto.OpMulti}}, {6, zktest.Match{}}, {5, zktest.Match{Path: "/a*"}},
	} {
		if got := zs.Requests(want.m); got != want.n {
			t.Errorf("%v: %d, want %d", want.m, got, want.n)
		}
	}
	if got := zs.RequestCounts()[zktest.Request{Op: proto.OpGetData, Path: "/a", Session: c.SessionID()}]; got != 3 {
		t.Error(got)
	}
	zs.ForgetRequests()
	if got := zs.Requests(zktest.Match{}); got != 0 {
		t.Error(got)
	}
}
