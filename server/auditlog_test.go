package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/audit"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
)

// auditBook is a sink that stores the records.
type auditBook struct {
	mu      sync.Mutex
	records []string
}

func (b *auditBook) Write(records []AuditRecord) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range records {
		var text []string
		for _, f := range (*audit.Record)(&records[i]).Fields() {
			if f.Name != "session" {
				text = append(text, f.Name+"="+f.Value)
			}
		}
		b.records = append(b.records, strings.Join(text, " "))
	}
	return nil
}

func (b *auditBook) Close() error { return nil }

func TestAudit(t *testing.T) {
	t.Parallel()
	book := &auditBook{}
	s := startServer(t, func(c *Config) { c.Audit, c.Znodes.ExtendedTypes = &Audit{Sink: book}, true })
	w := connect(t, s)
	open := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	create := func(op proto.Op, path string, mode proto.CreateMode) {
		w.call(op, &proto.CreateRequest{Path: path, ACL: open, Flags: int32(mode)})
	}
	create(proto.OpCreate, "/a", proto.ModePersistent)
	create(proto.OpCreate, "/a", proto.ModePersistent)
	create(proto.OpCreate2, "/a/s-", proto.ModePersistentSequential)
	create(proto.OpCreate2, "/none/s-", proto.ModePersistentSequential)
	create(proto.OpCreateContainer, "/c", proto.ModeContainer)
	w.call(proto.OpCreateTTL, &proto.CreateTTLRequest{Path: "/ttl", ACL: open, Flags: int32(proto.ModePersistentTTL), TTL: 1e6})
	w.must(proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("bob:pw")})
	w.call(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
	w.call(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: 77})
	w.call(proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: open, Version: -1})
	w.call(proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
	w.call(proto.OpSync, &proto.SyncRequest{Path: "/"})
	w.call(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/m", ACL: open}},
		{Op: proto.OpCheck, Req: &proto.CheckVersionRequest{Path: "/m", Version: -1}},
		{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: "/m", Version: -1}},
		{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/m", Version: -1}},
	}})
	w.call(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/m", ACL: open}},
		{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/none", Version: -1}},
	}})
	w.call(proto.OpReconfig, &proto.ReconfigRequest{Joining: "server.9=a:1:2", CurConfigID: -1})
	create(proto.OpCreate, "/e", proto.ModeEphemeral)
	w.call(proto.OpDelete, &proto.DeleteRequest{Path: "/a", Version: -1})
	w.call(proto.OpCloseSession, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const anon, bob = "user=127.0.0.1 ip=127.0.0.1 ", "user=bob,127.0.0.1 ip=127.0.0.1 "
	want := []string{
		anon + "operation=create znode=/a znode_type=persistent result=success",
		anon + "operation=create znode=/a znode_type=persistent result=failure",
		anon + "operation=create znode=/a/s-0000000000 znode_type=persistent_sequential result=success",
		anon + "operation=create znode=/none/s- znode_type=persistent_sequential result=failure",
		anon + "operation=create znode=/c znode_type=container result=success",
		anon + "operation=create znode=/ttl znode_type=persistent_with_ttl result=success",
		bob + "operation=setData znode=/a result=success",
		bob + "operation=setData znode=/a result=failure",
		bob + "operation=setAcl znode=/a acl=world:anyone:cdrwa result=success",
		bob + "operation=create znode=/m znode_type=persistent result=success",
		bob + "operation=setData znode=/m result=success",
		bob + "operation=delete znode=/m result=success",
		bob + "operation=multiOperation result=failure",
		bob + "operation=reconfig result=failure",
		bob + "operation=create znode=/e znode_type=ephemeral result=success",
		bob + "operation=delete znode=/a result=failure",
		"user=" + audit.ProcessUser() + " operation=ephemeralZNodeDeletionOnSessionCloseOrExpire znode=/e result=success",
	}
	want = append([]string{"user=" + audit.ProcessUser() + " operation=serverStart result=success"}, want...)
	want = append(want, "user="+audit.ProcessUser()+" operation=serverStop result=invoked")
	if !slices.Equal(book.records, want) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(book.records, "\n"), strings.Join(want, "\n"))
	}
}

func TestAuditFromZooCfg(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                  "<nil>",
		"audit.enable=true": "{ 10485760 10 <nil>}",
		"audit.enable=true\naudit.file=/a\naudit.maxFileSizeInKb=1\naudit.maxBackups=2": "{/a 1024 2 <nil>}",
	} {
		z, err := zoocfg.ParseText("zoo.cfg", "clientPort=0\ndataDir="+filepath.Join(t.TempDir(), "x")+"\n"+text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		c, err := fromZooCfg(z, allFormats())
		if err != nil {
			t.Fatal(err)
		}
		got := "<nil>"
		if c.Audit != nil {
			got = fmt.Sprint(*c.Audit)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAuditFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := startServer(t, func(c *Config) { c.Audit = &Audit{Path: path} })
	connect(t, s).create("/a", nil, proto.ModePersistent)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Count(string(b), "\n") != 3 || !strings.Contains(string(b), "\tznode=/a\t") {
		t.Errorf("%v\n%s", err, b)
	}
	missing := filepath.Join(path, "x")
	if s, err := Start(t.Context(), Config{Memory: true, Audit: &Audit{Path: missing}}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("started without its audit log: %v", err)
		if s != nil {
			_ = s.Close()
		}
	}
}

// TestAuditInEnsemble: the server that the client is connected to records its requests, on a
// follower as on the leader. Every server records the ephemeral znodes that ended with a
// session, including an expired one.
func TestAuditInEnsemble(t *testing.T) {
	books := make([]*auditBook, 3)
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		for i, s := range e.servers {
			w := connect(t, s)
			w.create(fmt.Sprint("/e", i), nil, proto.ModeEphemeral)
			if i > 0 {
				w.must(proto.OpCloseSession, nil)
				continue
			}
			_ = w.nc.Close() // the session expires
		}
		for _, s := range e.servers {
			eventually(t, "the sessions are over", func() bool {
				t := s.Node().Tree()
				t.RLock()
				defer t.RUnlock()
				return t.EphemeralCount() == 0
			})
		}
		for i, s := range e.servers {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			book := strings.Join(books[i].records, "\n")
			for j := range e.servers {
				own := strings.Count(book, fmt.Sprintf("operation=create znode=/e%d ", j))
				if ended := strings.Count(book, fmt.Sprintf("CloseOrExpire znode=/e%d ", j)); ended != 1 || own == 1 != (i == j) {
					t.Errorf("server %d has written %d creates and %d ends of /e%d:\n%s", i+1, own, ended, j, book)
				}
			}
		}
	}, func(c *Config) {
		books[c.Quorum.ID-1] = &auditBook{}
		c.Audit = &Audit{Sink: books[c.Quorum.ID-1]}
	})
}
