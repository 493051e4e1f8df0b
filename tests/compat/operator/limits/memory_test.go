package limits

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestMemoryCeiling fills a server until it refuses writes, checks what still works, and
// frees memory again.
func TestMemoryCeiling(t *testing.T) {
	need(t)
	srv := process.Start(t, t.TempDir(), sets([]string{"memoryCeiling=96m", "snapCount=1000000000"})...)
	p := client(t, srv.Addr)
	const size, most = 256 << 10, 2000 // 512 MB
	n := 0
	said := ""
	for ; n < most; n++ {
		if said = p.ask(proto.OpCreate, create(fmt.Sprintf("/n%04d", n), size)); said != proto.Ok.Error() {
			break
		}
	}
	if said != proto.ErrQuotaExceeded.Error() {
		t.Fatalf("after %d znodes of %d bytes: %s", n, size, said)
	}
	t.Logf("%d znodes of %d bytes were taken", n, size)
	if n*size > 96<<20 {
		t.Errorf("%d bytes are above the ceiling", n*size)
	}
	for what, got := range map[string]string{
		"a read":                    p.ask(proto.OpGetData, &proto.GetDataRequest{Path: "/n0000"}),
		"a ping":                    p.ask(proto.OpPing, nil),
		"a sync":                    p.ask(proto.OpSync, &proto.SyncRequest{Path: "/"}),
		"a write of no more":        p.ask(proto.OpSetData, set("/n0000", size)),
		"a delete":                  p.ask(proto.OpDelete, &proto.DeleteRequest{Path: "/n0000", Version: -1}),
		"a new session, and a read": client(t, srv.Addr).ask(proto.OpExists, &proto.ExistsRequest{Path: "/n0001"}),
	} {
		if got != proto.Ok.Error() {
			t.Errorf("%s: %s", what, got)
		}
	}
	if m := mntr(t, srv.Addr); !strings.Contains(m, "zk_memory_full\t1\n") {
		t.Errorf("mntr does not say so:\n%s", m)
	}
	for i := 1; i < n/2; i++ {
		if got := p.ask(proto.OpDelete, &proto.DeleteRequest{Path: fmt.Sprintf("/n%04d", i), Version: -1}); got != proto.Ok.Error() {
			t.Fatal(got)
		}
	}
	wait.Eventually(t, "a write after half of it was deleted", func() bool {
		return p.ask(proto.OpCreate, create("/again", size)) == proto.Ok.Error()
	})
}

func mntr(t *testing.T, addr string) string {
	t.Helper()
	m := must.Get(process.Word(addr, "mntr", patience))(t)
	return m
}
