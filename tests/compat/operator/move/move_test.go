package move

import (
	"net"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// TestThereAndBack moves all data of a ZooKeeper to zkgo, with a client that keeps its
// session, and from there to another ZooKeeper.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	need(t)
	zk := oracle.Start(t, options())
	here := freeAddr(t)
	c := connect(t, zk.Addr()+","+here)
	session := c.Session().ID
	everyKind(t, c)
	want := picture(t, reader(t, zk.Addr()))
	zk.Stop() // as kill -9 does

	data, r := imported(t, zkfiles.Source{Data: dir(dataDir(zk))})
	if !r.Verified || r.Different != 0 || r.Ephemerals != 3 || r.Zxid <= r.Report.Zxid {
		t.Errorf("%+v", *r.Report)
	}
	stop, _ := start(t, data, here)
	same(t, "imported", picture(t, reader(t, here)), want)
	stat, _, err := c.Exists(ctx(t), "/kinds/ephemeral") // by the client that moved along
	if err != nil || stat.EphemeralOwner != session || c.Session().ID != session {
		t.Errorf("the ephemeral znode belongs to %#x, the client has session %#x, before it was %#x: %v", stat.EphemeralOwner, c.Session().ID, session, err)
	}
	if path := must.Get(c.Create(ctx(t), "/kinds/seq-", nil, client.Sequential))(t); path != "/kinds/seq-0000000019" {
		t.Errorf("the next sequential znode is %s", path)
	}
	must.Get(c.Set(ctx(t), "/kinds/counted", []byte("more"), -1))(t)
	want = picture(t, reader(t, here))
	stop()

	for _, compression := range []zkfiles.Compression{zkfiles.None, zkfiles.Gzip, zkfiles.Snappy} {
		back(t, zk, c, data, compression, session, want)
	}
}

// back exports data to a ZooKeeper, which must show the same.
func back(t *testing.T, zk *oracle.Server, c *client.Client, data string, compression zkfiles.Compression, session int64, want map[string]string) {
	t.Helper()
	zk.Stop()
	empty(t, dataDir(zk))
	out := must.Get(migrate.Export(config(data, ""), dataDir(zk), compression))(t)
	if !out.HasTTL {
		t.Errorf("%+v", *out)
	}
	must.Do(t, zk.Run())
	same(t, "exported "+string(compression), picture(t, reader(t, zk.Addr())), want)
	// The session was opened at a ZooKeeper, so ZooKeeper knows its password.
	stat, _, err := c.Exists(ctx(t), "/kinds/ephemeral")
	if err != nil || stat.EphemeralOwner != session || c.Session().ID != session {
		t.Errorf("back: the ephemeral znode belongs to %#x, the client has session %#x, before it was %#x: %v", stat.EphemeralOwner, c.Session().ID, session, err)
	}
}

// freeAddr returns an address that no server listens on now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}
