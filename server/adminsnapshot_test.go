package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// askState sends a request to the AdminServer with an Authorization header.
func askState(t *testing.T, method, url, auth string, body io.Reader) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	// Without Connection: close, the server reads the rest of a body that it refuses, up to
	// 256 KiB, and the client always gets the response.
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

// The AdminServer's snapshot is the state in ZooKeeper's format. It requires all
// permissions on the root and leaves no file behind.
func TestAdminSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, "admin-snapshot-1.tmp")
	if err := os.WriteFile(left, []byte("of an earlier life"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(c *Config) {
		c.Memory, c.DataDir, c.Log.Dir = false, dir, dir
		c.Admin = &Admin{Addr: "127.0.0.1:0"}
	})
	<-s.Ready()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("files of an earlier run: %v", err)
	}
	w := connect(t, s)
	w.create("/a", []byte("x"), proto.ModePersistent)
	w.create("/e", nil, proto.ModeEphemeral)
	base := "http://" + s.AdminAddr() + "/commands/"
	code, head, b := askState(t, http.MethodGet, base+"snapshot", superAuth, nil)
	if code != 200 {
		t.Fatalf("%d %s", code, b)
	}
	tr, table := tree.New(), session.NewTable()
	info, err := zkfiles.ReadSnapshot("answer", bytes.NewReader(b), 0, zkfiles.Limits{}, tr, table)
	if err != nil || !info.Verified {
		t.Fatalf("%+v, %v", info, err)
	}
	mine := s.Node().Tree()
	mine.RLock()
	if tr.Digest() != mine.Digest() || tr.LastZxid() != mine.LastZxid() || table.Len() != 1 || head.Get("last_zxid") == "" {
		t.Errorf("digest %x at %x of %d sessions, %v", tr.Digest(), tr.LastZxid(), table.Len(), head)
	}
	mine.RUnlock()
	eventually(t, "nothing is left behind", func() bool { // the client has the whole response before the handler ends
		found, err := filepath.Glob(filepath.Join(dir, "admin-snapshot-*.tmp"))
		return err == nil && len(found) == 0
	})
	if _, _, ok := s.Node().LastSnapshot(); ok {
		t.Error("an unexpected snapshot")
	}
	if code, _, b := askState(t, http.MethodGet, base+"snapshot?streaming=false", superAuth, nil); code != 200 {
		t.Errorf("%d %s", code, b)
	}
	if zxid, at, ok := s.Node().LastSnapshot(); !ok || zxid != tr.LastZxid() || at.IsZero() || s.Node().LastSnapshotBytes() == 0 {
		t.Errorf("%x %v %v", zxid, at, ok)
	}

	// The open ACL of the root doesn't open the command, and neither does an address in it.
	host := proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: "127.0.0.1"}}
	for _, acl := range [][]proto.ACL{proto.OpenACL(), {host}} {
		w.must(proto.OpSetACL, &proto.SetACLRequest{Path: "/", Version: -1, ACL: acl})
		for auth, want := range map[string]int{"": 401, "digest some:body": 403, "ip": 403} {
			if code, _, b := askState(t, http.MethodGet, base+"snapshot", auth, nil); code != want {
				t.Errorf("%q with the ACL %v: %d %.80s", auth, acl, code, b)
			}
		}
	}
	// Only admin:pw has all permissions; other clients may still read.
	id, err := schemes.DigestID("SHA1", "admin:pw")
	if err != nil {
		t.Fatal(err)
	}
	w.must(proto.OpSetACL, &proto.SetACLRequest{Path: "/", Version: -1, ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: id}}, {Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}})
	for auth, want := range map[string]int{"digest some:body": 403, "digest": 401, "x509 x": 401, "sasl x": 401, "ip": 403, "Digest admin:pw": 200} {
		if code, _, b := askState(t, http.MethodGet, base+"snapshot", auth, nil); code != want {
			t.Errorf("%s: %d %.80s", auth, code, b)
		}
	}
}

// A server that doesn't know whether it is up to date returns no snapshot.
func TestAdminSnapshotOfAServerCutOff(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		_, others := e.leader()
		s := others[0]
		var rest []string
		for id, other := range e.servers {
			if other != s {
				rest = append(rest, host(id+1))
			}
		}
		export := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e, err := adminSourceOf(s).Export(ctx)
			if err != nil {
				return err
			}
			return e.Content.Close()
		}
		if err := export(); err != nil {
			t.Error(err)
		}
		e.net.Partition([]string{host(int(s.cfg.Quorum.ID))}, rest)
		if err := export(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "up to date") {
			t.Errorf("cut off: %v", err)
		}
	})
}
