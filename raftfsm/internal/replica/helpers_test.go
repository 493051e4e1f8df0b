package replica

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aloneConfig returns the configuration of a standalone server with empty directories.
func aloneConfig(t *testing.T) Config {
	dir := t.TempDir()
	return Config{
		Server: datadir.Server{ID: 1, Standalone: true}, Level: command.Level,
		Dirs:  datadir.Dirs{FS: vfs.OS{}, Log: filepath.Join(dir, "log"), Snap: filepath.Join(dir, "snap")},
		Store: raftlog.WAL, SnapCount: 1000, SnapBytes: 1 << 30, SnapRetain: 3,
		ElectionTimeout: time.Second, Lease: time.Second,
		Now: time.Now, Wall: time.Now, Logger: slog.New(slog.DiscardHandler), Open: OpenStores,
	}
}

// memberConfig returns the configuration of server 3 of three with empty directories.
func memberConfig(t *testing.T) Config {
	cfg := aloneConfig(t)
	cfg.Server = datadir.Server{ID: 3}
	for id, addr := range []string{"s1:2888", "s2:2888", "s3:2888"} {
		cfg.Server.Members = append(cfg.Server.Members, membership.Member{ID: uint64(id + 1), QuorumAddr: addr})
	}
	return cfg
}

// elsewhere returns an imported state: a persistent znode, an ephemeral one, and the
// session that owns it.
func elsewhere() (*tree.Tree, *session.Table) {
	t, table := tree.New(), session.NewTable()
	s := table.Create(1, 3_600_000, [16]byte{5})
	const ephemeral = 1
	for zxid, req := range map[int64]*proto.CreateRequest{
		0x5_0000_0001: {Path: "/kept", ACL: proto.OpenACL(), Data: []byte("value")},
		0x5_0000_0002: {Path: "/gone", ACL: proto.OpenACL(), Flags: ephemeral},
	} {
		t.Apply(&tree.Txn{Zxid: zxid, Time: 5, Session: s.ID}, proto.OpCreate, req)
	}
	t.Advance(0x5_0000_0007)
	return t, table
}

// startAlone starts a standalone replica, which is stopped when the test ends.
func startAlone(t *testing.T, cfg Config) *Replica {
	t.Helper()
	r := New(cfg, apply.Detached())
	if err := r.StartAlone(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r) })
	return r
}

// stop stops Raft and closes the stores. Stopping again is harmless.
func stop(t *testing.T, r *Replica) {
	t.Helper()
	if err := r.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// lead proposes the entry that starts a leadership, and waits until it is applied.
func lead(t *testing.T, r *Replica) {
	t.Helper()
	for won := range r.Raft().LeaderCh() {
		if won {
			break
		}
	}
	s := command.LeaderStart{Server: 1, Incarnation: 1, Level: command.Level, Flags: command.FlagStandalone, Cluster: r.Identity.ClusterID()}
	if err := r.Raft().Apply(s.Append(nil), 0).Error(); err != nil {
		t.Fatal(err)
	}
}
