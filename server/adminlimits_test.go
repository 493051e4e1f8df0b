package server

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"log/slog"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
	"github.com/zkgo/zkgo/tree"
)

// bomb returns a compressed snapshot file a thousandth the size of its content: one znode
// with n zeros.
func bomb(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	head := binary.BigEndian.AppendUint32(nil, 0x5a4b534e) // "ZKSN"
	head = binary.BigEndian.AppendUint32(head, 2)
	head = binary.BigEndian.AppendUint64(head, math.MaxUint64)
	head = binary.BigEndian.AppendUint32(head, 0)         // sessions
	head = binary.BigEndian.AppendUint32(head, 0)         // lists
	head = binary.BigEndian.AppendUint32(head, 0)         // path ""
	head = binary.BigEndian.AppendUint32(head, uint32(n)) // data
	zeros := make([]byte, 1<<20)
	_, err := z.Write(head)
	for left := n; left > 0 && err == nil; left -= len(zeros) {
		_, err = z.Write(zeros[:min(left, len(zeros))])
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The server rejects a field longer than jute.maxbuffer before it reads the field.
func TestRestoreRejectsALongField(t *testing.T) {
	cost.MeasuresMemory(t)
	s := startServer(t, withAdmin)
	<-s.Ready()
	content := bomb(t, 200<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code, a := sendState(t, s, "restore", content)
	runtime.ReadMemStats(&after)
	if code == http.StatusOK || a.Error == nil || !strings.Contains(*a.Error, "jute.maxbuffer") {
		t.Errorf("%d %v", code, a.Error)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// A state that doesn't fit into memory fails the restore, but not the server.
func TestRestoreRespectsTheMemoryCeiling(t *testing.T) {
	cost.MeasuresMemory(t)
	s := startServer(t, withAdmin)
	<-s.Ready()
	g := limits.NewMemory(100<<20, slog.New(slog.DiscardHandler))
	g.Collect = func() {}
	reads := 0
	g.Read = func() limits.MemoryUse {
		reads++
		return limits.MemoryUse{Live: int64(reads) * 20 << 20, Heap: int64(reads) * 20 << 20}
	}
	_, err := zkfiles.ReadSnapshot("s", bytes.NewReader(bomb(t, 50<<20)), 0, zkfiles.Limits{Room: g.RoomToRestore}, tree.New(), session.NewTable())
	if err == nil || !strings.Contains(err.Error(), "memoryCeiling") || reads > 10 {
		t.Errorf("after %d looks: %v", reads, err)
	}
}
