package migrate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// recorded returns a directory written by a real ZooKeeper 3.9.5.
func recorded() zkfiles.Source {
	dir := "../zkfiles/testdata/3.9.5"
	return zkfiles.Source{Data: zkfiles.Dir{FS: os.DirFS(dir), Name: dir}}
}

// TestImportIsAState: a server should find the imported state, and its export should be the same
// except for the zxid, which is higher.
func TestImportIsAState(t *testing.T) {
	t.Parallel()
	cfg := server.Config{DataDir: t.TempDir(), Znodes: server.Znodes{ExtendedTypes: true}}
	r := must.Get(Import(cfg, recorded()))(t)
	if r.Zxid != 1<<32 || r.Report.Zxid != 0x22 || !r.Verified {
		t.Errorf("%+v %+v", *r, *r.Report)
	}
	dirs := must.Get(cfg.Offline())(t)
	p, err := dirs.Survey()
	if err != nil || p.Zxid != r.Zxid || p.Sessions != 1 {
		t.Errorf("%+v %v", p, err)
	}
	out := t.TempDir()
	must.Get(Export(cfg, out, zkfiles.Snappy))(t)
	before, _, err := zkfiles.Load(recorded())
	if err != nil {
		t.Fatal(err)
	}
	after, report, err := zkfiles.Load(zkfiles.Source{Data: zkfiles.Dir{FS: os.DirFS(out), Name: out}, NoLogs: true})
	if err != nil {
		t.Fatal(err)
	}
	if after.Digest() != before.Digest() || after.Len() != before.Len() || len(after.Sessions) != len(before.Sessions) || !report.Verified || report.Epoch != 1 {
		t.Errorf("%+v", *report)
	}
	for id, timeout := range before.Sessions {
		if after.Sessions[id] != timeout {
			t.Errorf("session %#x: timeout %d instead of %d", id, after.Sessions[id], timeout)
		}
	}
}

// TestImportRisesAboveEveryEpoch: a server of the old ensemble may know an epoch without
// writes, so we should start above it.
func TestImportRisesAboveEveryEpoch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		epoch string
		zxid  int64
	}{{"7", 8 << 32}, {"2147483646", 2147483647 << 32}, {"2147483647", 0}} {
		from := t.TempDir()
		must.Do(t, os.CopyFS(from, os.DirFS("../zkfiles/testdata/3.9.5")))
		must.Do(t, os.WriteFile(filepath.Join(from, "version-2", "acceptedEpoch"), []byte(c.epoch), 0o600))
		r, err := Import(server.Config{DataDir: t.TempDir()}, zkfiles.Source{Data: zkfiles.Dir{FS: os.DirFS(from), Name: from}})
		if c.zxid == 0 && err == nil || c.zxid != 0 && (err != nil || r.Zxid != c.zxid) {
			t.Errorf("epoch %s: %+v %v", c.epoch, r, err)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Import(server.Config{Memory: true}, recorded()); err == nil {
		t.Error("without a data directory")
	}
	if _, err := Import(server.Config{}, recorded()); err == nil {
		t.Error("not a directory")
	}
	cfg := server.Config{DataDir: t.TempDir()}
	must.Get(Import(cfg, recorded()))(t)
	if _, err := Import(cfg, recorded()); !errors.Is(err, raftfsm.ErrHasState) || !strings.Contains(err.Error(), cfg.DataDir) {
		t.Errorf("a second time: %v", err)
	}
}

// TestImportForgetsServers: a standalone server has no list of servers, and clients should not
// connect to the old ensemble's servers.
func TestImportForgetsServers(t *testing.T) {
	t.Parallel()
	for _, distributed := range []bool{false, true} {
		tr := tree.New()
		tr.SetConfig(&tree.Txn{Zxid: 5, Time: 6}, []byte("server.1=old:2888:3888:participant\nversion=0"), -1)
		forgetServers(&server.Config{Quorum: server.Quorum{Ensemble: distributed}}, tr, time.Now())
		if left := len(tr.Get(tree.ConfigPath).Data()) > 0; left != distributed || tr.LastZxid() != 5 {
			t.Errorf("distributed %v: left %v", distributed, left)
		}
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Export(server.Config{DataDir: t.TempDir()}, t.TempDir(), zkfiles.None); !errors.Is(err, raftfsm.ErrNoState) {
		t.Error(err)
	}
	cfg := server.Config{DataDir: t.TempDir()}
	must.Get(Import(cfg, recorded()))(t)
	to := t.TempDir()
	if _, err := Export(cfg, to, "lzma"); err == nil || !strings.Contains(err.Error(), "lzma") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(to, "version-2", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
