package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// snapshotOf returns a tree with n znodes, and its snapshot in ZooKeeper's format.
func snapshotOf(t *testing.T, n int) (*tree.Tree, []byte) {
	t.Helper()
	tr, table := tree.New(), session.NewTable()
	s := table.Create(1, 4000, [16]byte{1})
	for i := range n {
		req := &proto.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: []byte{byte(i)}, ACL: proto.OpenACL(), Flags: int32(i % 2)}
		tr.Apply(&tree.Txn{Zxid: int64(i + 1), Time: 7, Session: s.ID}, proto.OpCreate, req)
	}
	tr.Lock()
	snap := tr.Snapshot()
	tr.Unlock()
	defer snap.Release()
	var b bytes.Buffer
	must.Do(t, zkfiles.WriteSnapshot(&b, snap, table, zkfiles.None))
	return tr, b.Bytes()
}

// adminServer answers as the AdminServer of a server with that snapshot would.
func adminServer(t *testing.T, snapshot []byte, change func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change != nil && change(w, r) {
			return
		}
		switch r.URL.Path {
		case "/commands/server_stats":
			_, _ = w.Write([]byte(`{"version":"3.9.5-x","server_stats":{"server_state":"leader"},"command":"server_stats"}`))
		case "/commands/snapshot":
			w.Header()["last_zxid"] = []string{"0x3"}
			w.Header()["snapshot_size"] = []string{strconv.Itoa(len(snapshot))}
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(snapshot)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTakeAndLoad(t *testing.T) {
	t.Parallel()
	tr, snapshot := snapshotOf(t, 5)
	s := adminServer(t, snapshot, nil)
	path := filepath.Join(t.TempDir(), "b.zkb")
	r, err := Take(t.Context(), Source{URL: s.URL, Client: s.Client()}, path, "a test", true)
	if err != nil || r.Znodes != 9 || r.Session != 1 || !r.Checked || r.Bytes != int64(len(snapshot)) {
		t.Fatalf("%+v, %v", r, err)
	}
	if h := r.Header; h.Zxid != "0x3" || h.State != "leader" || h.Server != "3.9.5-x" || h.Source != s.URL+"/commands" || time.Since(h.Taken) > time.Hour {
		t.Errorf("%+v", h)
	}
	c, err := Load(path)
	if err != nil || c.Kind != KindBackup || c.Tree.Digest() != tr.Digest() || *c.Header != *r.Header {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Take(t.Context(), Source{URL: s.URL, Client: s.Client()}, path, "", true); !errors.Is(err, os.ErrExist) {
		t.Errorf("in the place of another one: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "version-2")
	out, err := ExtractTo(path, dir)
	if err != nil || filepath.Base(out) != "snapshot.5" {
		t.Fatal(out, err)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, snapshot) {
		t.Errorf("the snapshot came out as another one: %v", err)
	}
	if c, err := Load(out); err != nil || c.Kind != KindZooKeeper || c.Tree.Digest() != tr.Digest() || !c.Verified {
		t.Errorf("%+v, %v", c, err)
	}
	onlyFile(t, path)
}

// onlyFile fails the test unless path exists and is the only file in its directory.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("%v, %v", entries, err)
	}
}

// We should notice if any byte of a backup is changed, removed or added.
func TestDamage(t *testing.T) {
	t.Parallel()
	_, snapshot := snapshotOf(t, 40)
	var whole bytes.Buffer
	must.Get(Write(&whole, Header{Zxid: "0x28"}, bytes.NewReader(snapshot)))(t)
	path := filepath.Join(t.TempDir(), "damaged.zkb")
	refused := func(what string, b []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(path, b, 0o600))
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range whole.Len() {
		b := bytes.Clone(whole.Bytes())
		b[i] ^= 1 << (i % 8)
		refused(fmt.Sprintf("byte %d flipped", i), b)
		refused(fmt.Sprintf("cut at %d", i), whole.Bytes()[:i])
	}
	refused("more at the end", append(bytes.Clone(whole.Bytes()), 0))
	must.Do(t, os.WriteFile(path, whole.Bytes(), 0o600))
	if _, err := Load(path); err != nil {
		t.Errorf("undamaged: %v", err)
	}
}

// The end mark should cover the snapshot, not only the records.
func TestTheEndFitsTheSnapshot(t *testing.T) {
	t.Parallel()
	_, snapshot := snapshotOf(t, 4)
	var b bytes.Buffer
	b.WriteString(magic)
	r := &recordWriter{w: &b}
	data := &dataWriter{r: r}
	z := gzip.NewWriter(data)
	_, err := z.Write(snapshot)
	must.Do(t, errors.Join(err, r.text(typeHeader, Header{}), z.Close(), data.flush(), r.text(typeEnd, End{Bytes: int64(len(snapshot)), Sum: 1})))
	path := filepath.Join(t.TempDir(), "b.zkb")
	must.Do(t, os.WriteFile(path, b.Bytes(), 0o600))
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "with checksum") {
		t.Errorf("%v", err)
	}
}

// Data spans many records. We should notice if a record is missing or was moved.
func TestRecordsAreAChain(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := &recordWriter{w: &b}
	var starts []int
	for _, typ := range []byte{typeHeader, typeData, typeData, typeData, typeEnd} {
		starts = append(starts, b.Len())
		must.Do(t, r.write(typ, []byte("{}")))
	}
	part := func(i int) []byte { return b.Bytes()[starts[i]:min(starts[i]+recordHead+2, b.Len())] }
	for _, order := range [][]int{{0, 2, 3, 4}, {0, 2, 1, 3, 4}, {0, 1, 1, 2, 3, 4}} {
		var moved []byte
		for _, i := range order {
			moved = append(moved, part(i)...)
		}
		d := &recordReader{r: bytes.NewReader(moved)}
		var err error
		for range order {
			if _, _, err = d.next(); err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("%v: %v", order, err)
		}
	}
}

func TestNotABackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "text": "hello, world", "newer": "zkgobak9...................."} {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory of anything")
	}
}

// Neither a server's error nor an incomplete snapshot should leave a file.
func TestRefusals(t *testing.T) {
	t.Parallel()
	_, snapshot := snapshotOf(t, 3)
	busy := 2
	for _, tc := range []struct {
		name   string
		change func(w http.ResponseWriter, r *http.Request) bool
		want   string // "" means success
	}{
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"command":"snapshot","error":"Not authorized"}`))
			return true
		}, "Not authorized"},
		{"not serving", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"command":"snapshot","error":"not currently serving"}`))
			return true
		}, "not currently serving"},
		{"something else", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusNotFound)
			return true
		}, "is this the AdminServer"},
		{"cut off", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "snapshot") {
				return false
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header()["last_zxid"] = []string{"0x3"}
			w.Header()["snapshot_size"] = []string{strconv.Itoa(len(snapshot))}
			_, _ = w.Write(snapshot[:len(snapshot)-20])
			return true
		}, "bytes came of"},
		{"damaged", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "snapshot") {
				return false
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header()["last_zxid"] = []string{"0x3"}
			b := bytes.Clone(snapshot)
			b[len(b)/2] ^= 1
			_, _ = w.Write(b)
			return true
		}, "cannot be restored"},
		{"busy for a while", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "snapshot") || busy == 0 {
				return false
			}
			busy--
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, ""},
	} {
		s := adminServer(t, snapshot, tc.change)
		path := filepath.Join(t.TempDir(), "b.zkb")
		_, err := Take(context.Background(), Source{URL: s.URL, Client: s.Client(), Retry: 3, Pause: time.Millisecond}, path, "", true)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			onlyFile(t, path)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), s.URL) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
			t.Errorf("%s: left behind: %v, %v", tc.name, left, err)
		}
	}
}
