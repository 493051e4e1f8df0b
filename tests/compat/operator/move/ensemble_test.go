package move

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// TestEnsemble moves a ZooKeeper ensemble, with a client, to a zkgo ensemble, and from there
// to a ZooKeeper ensemble again.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	need(t)
	old := oracle.Ensemble(t, 3, options())
	members, configs := newEnsemble(t)
	addrs := []string{old[0].Addr(), old[1].Addr(), old[2].Addr()}
	for _, cfg := range configs {
		addrs = append(addrs, cfg.ClientAddr)
	}
	c := connect(t, strings.Join(addrs, ","))
	session := c.Session().ID
	everyKind(t, c)
	want := picture(t, reader(t, old[2].Addr()))
	for _, s := range old {
		s.Stop()
	}

	// The server with the newest zxid becomes server 2 of the new ensemble.
	var best *zkfiles.Report
	var from string
	for _, s := range old {
		_, r, err := zkfiles.Load(zkfiles.Source{Data: dir(dataDir(s))})
		if err != nil {
			t.Fatal(err)
		}
		if best == nil || r.Zxid > best.Zxid {
			best, from = r, dataDir(s)
		}
	}
	first := configs[1]
	r := must.Get(migrate.Import(first, zkfiles.Source{Data: dir(from)}))(t)
	if !r.Verified || r.Zxid>>32 != best.Epoch+1 {
		t.Errorf("%+v, zxid %#x", *r.Report, r.Zxid)
	}
	servers := []*server.Server{run(t, first)}
	ready(t, servers[0])
	servers = append(servers, run(t, configs[0]), run(t, configs[2]))
	for _, s := range servers {
		ready(t, s)
	}
	for _, m := range members {
		got := reader(t, configs[m.ID-1].ClientAddr)
		must.Do(t, got.Sync(ctx(t), "/"))
		same(t, fmt.Sprint("server ", m.ID), picture(t, got), want)
	}
	stat, _, err := c.Exists(ctx(t), "/kinds/ephemeral")
	if err != nil || stat.EphemeralOwner != session || c.Session().ID != session {
		t.Errorf("the ephemeral znode belongs to %#x, the client has session %#x, before it was %#x: %v", stat.EphemeralOwner, c.Session().ID, session, err)
	}
	must.Get(c.Set(ctx(t), "/kinds", []byte("moved"), -1))(t)
	leader := reader(t, configs[1].ClientAddr)
	must.Do(t, leader.Sync(ctx(t), "/"))
	want = picture(t, leader)
	for _, s := range servers {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}

	for _, s := range old {
		empty(t, dataDir(s))
		must.Get(migrate.Export(first, dataDir(s), zkfiles.None))(t)
		must.Do(t, s.Launch())
	}
	same(t, "back", picture(t, reader(t, old[0].Addr()+","+old[1].Addr())), want)
	if stat, _, err := c.Exists(ctx(t), "/kinds/ephemeral"); err != nil || stat.EphemeralOwner != session || c.Session().ID != session {
		t.Errorf("back: the ephemeral znode belongs to %#x, the client has session %#x, before it was %#x: %v", stat.EphemeralOwner, c.Session().ID, session, err)
	}
}

// newEnsemble returns the configurations of three servers on free ports.
func newEnsemble(t *testing.T) (members []raftfsm.Member, configs []server.Config) {
	t.Helper()
	for id := uint64(1); id <= 3; id++ {
		addr := freeAddr(t)
		members = append(members, raftfsm.Member{ID: id, QuorumAddr: addr})
	}
	for _, m := range members {
		cfg := config(t.TempDir(), freeAddr(t))
		cfg.Quorum.ID, cfg.Quorum.Members = m.ID, members
		configs = append(configs, cfg)
	}
	return members, configs
}

func run(t *testing.T, cfg server.Config) *server.Server {
	t.Helper()
	s := must.Get(server.Start(ctx(t), cfg))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func ready(t *testing.T, s *server.Server) {
	t.Helper()
	select {
	case <-s.Ready():
	case <-ctx(t).Done():
		t.Fatal("a server does not serve")
	}
}
