package audit

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

var at = time.Date(2026, 11, 22, 9, 8, 51, 596e6, time.UTC)

// TestLines compares with the output of ZooKeeper 3.9.5 for the same changes.
func TestLines(t *testing.T) {
	t.Parallel()
	const session = 0x10002ff33dd0000
	for _, test := range []struct {
		r    Record
		want string
	}{
		{Record{User: "root", Operation: Start, Result: Success}, "INFO o.a.z.a.Slf4jAuditLogger: user=root\toperation=serverStart\tresult=success"},
		{
			Record{Session: session, User: "bob,127.0.0.1", IP: "127.0.0.1", Operation: Create, Path: "/m", NodeType: NodeType(proto.ModePersistentTTL), Result: Success},
			"INFO o.a.z.a.Slf4jAuditLogger: session=0x10002ff33dd0000\tuser=bob,127.0.0.1\tip=127.0.0.1\toperation=create\tznode=/m\tznode_type=persistent_with_ttl\tresult=success",
		},
		{
			Record{Session: session, User: "x", IP: "127.0.0.1", Operation: SetACL, Path: "/a", ACL: ACLText([]proto.ACL{
				{Perms: proto.PermAll, ID: proto.ID{Scheme: "world", ID: "anyone"}}, {Perms: proto.PermRead, ID: proto.ID{Scheme: "ip", ID: "127.0.0.1"}},
			}), Result: Failure},
			"ERROR o.a.z.a.Slf4jAuditLogger: session=0x10002ff33dd0000\tuser=x\tip=127.0.0.1\toperation=setAcl\tznode=/a\tacl=world:anyone:cdrwaip:127.0.0.1:r\tresult=failure",
		},
		{
			Record{Session: -1, User: "a\tresult=success\n2026 ü", Operation: Delete, Result: Failure},
			"ERROR o.a.z.a.Slf4jAuditLogger: session=0xffffffffffffffff\tuser=a\\u0009result=success\\u000a2026 ü\toperation=delete\tresult=failure",
		},
	} {
		test.r.Time = at
		if got, want := string(test.r.appendLine(nil)), "2026-11-22 09:08:51,596 "+test.want+"\n"; got != want {
			t.Errorf("%q, want\n%q", got, want)
		}
	}
}

func TestNodeTypes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for m := proto.CreateMode(0); m.Valid(); m++ {
		seen[NodeType(m)] = true
	}
	if len(seen) != 7 || seen[""] || NodeType(7) != "" {
		t.Errorf("%v", seen)
	}
}

func TestFileRotates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	must.Do(t, os.WriteFile(path, []byte("earlier\n"), 0o600))
	line := len((&Record{Time: at, Operation: Create, Path: "/0", Result: Success}).appendLine(nil))
	sink := must.Get(File(FileOptions{Path: path, MaxBytes: int64(2*line) + 1, Backups: 2}))(t)
	for batch := range 3 {
		var records []Record
		for i := range 3 {
			records = append(records, Record{Time: at, Operation: Create, Path: "/" + string(rune('0'+3*batch+i)), Result: Success})
		}
		must.Do(t, sink.Write(records))
	}
	must.Do(t, sink.Close())
	for name, want := range map[string]string{path: "78", path + ".1": "56", path + ".2": "34"} {
		b := must.Get(os.ReadFile(name))(t)
		got := ""
		for l := range strings.Lines(string(b)) {
			if _, after, ok := strings.Cut(l, "znode=/"); ok {
				got += after[:1]
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", filepath.Base(name), got, want)
		}
	}
	if _, err := os.Stat(path + ".3"); !os.IsNotExist(err) {
		t.Errorf("one backup too many: %v", err)
	}
	if _, err := File(FileOptions{Path: filepath.Join(path, "x")}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file below a file was opened: %v", err)
	}
}

// gate is a sink that writes when the test allows it.
type gate struct {
	mu      sync.Mutex
	let     chan struct{}
	records []Record
	fail    error
}

func (g *gate) Write(records []Record) error {
	<-g.let
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail == nil {
		g.records = append(g.records, records...)
	}
	return g.fail
}

func (g *gate) Close() error { return nil }

// TestSlowSink checks that Add doesn't wait for the sink, that Wait does, and that no
// record is lost.
func TestSlowSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{let: make(chan struct{})}
		l := New(g, slog.New(slog.DiscardHandler))
		for i := range 2 * maxHeld {
			l.Add(Record{Session: int64(i)})
		}
		stop := make(chan struct{})
		close(stop)
		l.Wait(stop) // returns because of stop
		waited := false
		go func() { l.Wait(nil); waited = true }()
		synctest.Wait()
		if waited {
			t.Error("readers continue although nothing has been written")
		}
		close(g.let)
		synctest.Wait()
		if !waited {
			t.Error("readers wait although everything has been written")
		}
		must.Do(t, l.Close())
		l.Add(Record{})
		l.Wait(nil)
		if len(g.records) != 2*maxHeld {
			t.Fatalf("%d records", len(g.records))
		}
		for i := range g.records {
			if g.records[i].Session != int64(i) {
				t.Fatalf("record %d is %d", i, g.records[i].Session)
			}
		}
	})
}

// TestSinkFails checks that the server continues and logs the number of lost records.
func TestSinkFails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := &gate{let: make(chan struct{}), fail: errors.New("disk full")}
	l := New(g, slog.New(slog.NewTextHandler(&out, nil)))
	l.Add(Record{})
	g.let <- struct{}{}
	l.Add(Record{})
	g.let <- struct{}{}
	// The writer has completed both writes when it dequeues the next batch.
	l.Add(Record{})
	g.mu.Lock()
	g.fail = nil
	g.mu.Unlock()
	close(g.let)
	must.Do(t, l.Close())
	text := out.String()
	if strings.Count(text, "disk full") != 1 || !strings.Contains(text, "works again") || len(g.records) == 0 {
		t.Errorf("%d records written, log:\n%s", len(g.records), text)
	}
}
