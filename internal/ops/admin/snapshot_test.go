package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// vault is a fake that provides a state.
type vault struct {
	fake
	kept, restored int
	err            error
}

func (v *vault) Export(context.Context) (*Export, error) {
	return &Export{Zxid: 0x1a, Bytes: 4, Content: io.NopCloser(strings.NewReader("ZKSN"))}, v.err
}

func (v *vault) Keep() (zxid, bytes int64, err error) {
	v.kept++
	return 0x1b, 5, v.err
}

func (v *vault) Restore(_ context.Context, r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	if string(b) != "ZKSN" {
		return 0, fmt.Errorf("no snapshot: %q", b)
	}
	v.restored++
	return 26, v.err
}

// state sends a command that reads or replaces the whole state.
func state(t *testing.T, h http.Handler, method, target, auth, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/commands/"+target, strings.NewReader(body))
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The responses are the same as ZooKeeper 3.9.5's, except for the texts of 429 and 503,
// which are null there, and for wrong methods, which ZooKeeper doesn't handle.
func TestSnapshotCommand(t *testing.T) {
	t.Parallel()
	v := &vault{fake: fake{role: "standalone"}}
	h := Handler(v, DefaultURL, Options{})
	const root = "digest root:pw"
	for _, tc := range []struct {
		method, target, auth, body string
		code                       int
		want                       string
	}{
		{"GET", "snapshot", "", "", 401, "{\n  \"command\" : \"snapshot\",\n  \"error\" : \"Auth info is missing for the command: "},
		{"GET", "snap", "digest", "", 401, "{\n  \"command\" : \"snap\",\n  \"error\" : \"Not authenticated: "},
		{"GET", "snapshot", "bogus x", "", 401, "Not authenticated"},
		{"GET", "snapshot", "digest else:pw", "", 403, "Not authorized"},
		{"GET", "snapshot", root, "", 200, "ZKSN"},
		{"GET", "snapshot?streaming=TRUE", root, "", 200, "ZKSN"},
		{"HEAD", "snapshot", root, "", 200, ""},
		{"GET", "snapshot?streaming=false", root, "", 200, "{\n  \"command\" : \"snapshot\",\n  \"error\" : null\n}"},
		{"GET", "snapshot?streaming=foo", root, "", 200, "null"},
		{"POST", "snapshot", root, "", 405, ""},
		{"GET", "restore", "", "", 401, "Auth info is missing for the command"},
		{"GET", "restore", root, "", 405, "POST"},
		{"PUT", "restore", "", "", 405, "POST"},
		{"POST", "restore", "", "ZKSN", 401, "Auth info is missing for the command"},
		{"POST", "rest", "digest else:pw", "ZKSN", 403, "Not authorized"},
		{"POST", "restore", root, "ZKSN", 200, "{\n  \"last_zxid\" : 26,\n  \"command\" : \"restore\",\n  \"error\" : null\n}"},
		{"POST", "restore", root, "root:x:0", 500, "root:x:0"},
	} {
		w := state(t, h, tc.method, tc.target, tc.auth, tc.body)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s as %q: %d %s", tc.method, tc.target, tc.auth, w.Code, w.Body)
		}
	}
	if v.kept != 2 || v.restored != 1 {
		t.Errorf("%d snapshots kept, %d restored", v.kept, v.restored)
	}
	head := state(t, h, "GET", "snapshot", root, "").Header()
	raw := map[string][]string(head) // the names as ZooKeeper writes them
	if raw["last_zxid"][0] != "0x1a" || raw["snapshot_size"][0] != "4" || head.Get("Content-Type") != "application/octet-stream" || head.Get("Content-Length") != "4" {
		t.Errorf("%v", head)
	}
	v.err = errors.New("the disk is full")
	for _, target := range []string{"snapshot", "snapshot?streaming=false"} {
		if w := state(t, h, "GET", target, root, ""); w.Code != 500 || !strings.Contains(w.Body.String(), "the disk is full") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	v.err = fmt.Errorf("%w: not here", ErrUnavailable)
	if w := state(t, h, "POST", "restore", root, "ZKSN"); w.Code != 503 || !strings.Contains(w.Body.String(), "not here") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSnapshotOptions(t *testing.T) {
	t.Parallel()
	const root = "digest root:pw"
	now := time.UnixMilli(1)
	v := &vault{fake: fake{role: "leader"}}
	h := Handler(v, DefaultURL, Options{Interval: time.Minute, RestoreInterval: time.Minute, Now: func() time.Time { return now }})
	codes := func() (codes []int) {
		for range 2 {
			codes = append(codes, state(t, h, "GET", "snapshot", root, "").Code, state(t, h, "POST", "restore", root, "ZKSN").Code)
		}
		return codes
	}
	for range 2 {
		// A rejected caller should not use up the interval of another one.
		if w := state(t, h, "GET", "snapshot", "", ""); w.Code != 401 {
			t.Error(w.Code)
		}
		if got := fmt.Sprint(codes()); got != "[200 200 429 429]" {
			t.Error(got)
		}
		now = now.Add(time.Minute)
	}
	h = Handler(v, DefaultURL, Options{NoSnapshot: true, NoRestore: true})
	if got := fmt.Sprint(codes()); got != "[503 503 503 503]" {
		t.Error(got)
	}
	if w := state(t, Handler(&vault{}, DefaultURL, Options{}), "GET", "snapshot", root, ""); w.Code != 200 || !strings.Contains(w.Body.String(), errNotServing) {
		t.Errorf("a server that does not serve: %d %s", w.Code, w.Body)
	}
	if w := state(t, Handler(&fake{role: "leader"}, DefaultURL, Options{}), "GET", "snapshot", root, ""); w.Code != 503 {
		t.Errorf("a server without: %d %s", w.Code, w.Body)
	}
}

// deadlined records whether a handler changes the deadlines of its connection.
type deadlined struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlined) SetReadDeadline(at time.Time) error  { d.set = append(d.set, at); return nil }
func (d *deadlined) SetWriteDeadline(at time.Time) error { d.set = append(d.set, at); return nil }

// If we refuse a command, we should keep the server's deadlines: its client may never send
// the body or read the reply.
func TestRefusedCommandsKeepTheirDeadlines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, command, auth string
		opts                  Options
		refused               bool
	}{
		{"POST", "restore", "", Options{}, true},
		{"GET", "restore", "", Options{}, true},
		{"PUT", "restore", "", Options{}, true},
		{"POST", "restore", "digest else:pw", Options{}, true},
		{"POST", "restore", "digest root:pw", Options{NoRestore: true}, true},
		{"POST", "restore", "digest root:pw", Options{}, false},
		{"GET", "snapshot", "", Options{}, true},
		{"GET", "snapshot", "digest root:pw", Options{NoSnapshot: true}, true},
		{"GET", "snapshot", "digest root:pw", Options{}, false},
		{"GET", "snapshot?streaming=false", "digest root:pw", Options{}, false},
	} {
		started := 0
		tc.opts.Started = func(*http.Request) { started++ }
		h := Handler(&vault{fake: fake{role: "standalone"}}, DefaultURL, tc.opts)
		r := httptest.NewRequestWithContext(t.Context(), tc.method, "/commands/"+tc.command, strings.NewReader("ZKSN"))
		if tc.auth != "" {
			r.Header.Set("Authorization", tc.auth)
		}
		w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, r)
		if (len(w.set) == 0) != tc.refused || (started == 0) != tc.refused {
			t.Errorf("%s %s as %q: %d, deadlines %v, started %d times", tc.method, tc.command, tc.auth, w.Code, w.set, started)
		}
	}
}
