package admin

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// send sends a request with headers, given as pairs of name and value.
func send(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, nil)
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	h.ServeHTTP(w, r)
	return w
}

// Without credentials, callers should get roles and numbers and nothing else: a new command
// is closed unless it is in this list.
func TestCommandsOpenToEveryCaller(t *testing.T) {
	t.Parallel()
	open := []string{
		"dirs", "get_trace_mask", "hash", "is_read_only", "last_snapshot", "leader", "monitor", "ruok", "server_stats", "watch_summary", "zabstate",
	}
	f := &vault{fake: fake{role: "leader"}}
	var refused int
	h := Handler(f, DefaultURL, Options{Profiles: true, Refused: func(*http.Request, string, string) { refused++ }})
	for _, c := range all() {
		for _, name := range c.names {
			want := http.StatusUnauthorized
			if slices.Contains(open, c.names[0]) {
				want = http.StatusOK
			}
			method := http.MethodGet
			if c.names[0] == "restore" {
				method = http.MethodPost
			}
			w := send(h, method, "/commands/"+name+"?traceMask=7")
			if w.Code != want || want == http.StatusUnauthorized && !strings.Contains(w.Header().Get("WWW-Authenticate"), "Basic") {
				t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, want)
			}
			if w := send(h, method, "/commands/"+name+"?traceMask=7", "Authorization", "digest else:pw"); want != http.StatusOK && w.Code != http.StatusForbidden {
				t.Errorf("%s of a stranger: %d %s", name, w.Code, w.Body)
			}
		}
	}
	if f.resets+f.connReset+int(f.mask)+f.kept+f.restored != 0 || refused == 0 {
		t.Errorf("changed by callers without credentials: %+v; %d refusals reported", f, refused)
	}
	for _, path := range []string{"/livez", "/readyz", "/", "/commands", "/commands/"} {
		if w := send(h, http.MethodGet, path); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"", "cmdline", "profile", "symbol", "trace", "heap"} {
		if w := send(h, http.MethodGet, "/debug/pprof/"+path); w.Code != http.StatusUnauthorized {
			t.Errorf("profile %s: %d", path, w.Code)
		}
	}
	if w := send(h, http.MethodGet, "/debug/pprof/cmdline", "Authorization", rootAuth); w.Code != http.StatusOK {
		t.Errorf("the administrator's profile: %d %s", w.Code, w.Body)
	}
}

// named is a source with metrics that have the name of a znode.
type named struct{ fake }

func (n *named) Metrics() []status.Metric {
	return append(n.fake.Metrics(), status.Metric{Name: "cnt_write_per_namespace", Key: "secret", Value: "1"},
		status.Metric{Name: "quota_count_usage_per_namespace", Key: "secret", Value: "1"})
}

// Only administrators should see names of znodes in the metrics.
func TestNamesInTheMetrics(t *testing.T) {
	t.Parallel()
	h := Handler(&named{fake{role: "leader"}}, DefaultURL, Options{})
	for auth, want := range map[string]bool{"": false, "digest else:pw": false, rootAuth: true} {
		body := send(h, http.MethodGet, "/commands/monitor", "Authorization", auth).Body.String()
		if strings.Contains(body, "secret") != want || !strings.Contains(body, "znode_count") {
			t.Errorf("%q: %s", auth, body)
		}
	}
}

// Basic authentication should mean the same as the scheme digest. A page of another site
// should not be able to use a browser's credentials.
func TestBasicAuthentication(t *testing.T) {
	t.Parallel()
	h := Handler(&fake{role: "leader"}, DefaultURL, Options{})
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, tc := range []struct {
		auth, site string
		code       int
	}{
		{basic("root:pw"), "", 200}, {basic("root:pw"), "same-origin", 200}, {basic("root:pw"), "none", 200},
		{basic("root:pw"), "cross-site", 403}, {basic("root:pw"), "same-site", 403}, {rootAuth, "cross-site", 403},
		{basic("root:no"), "", 403}, {"Basic nonsense", "", 401}, {"basic", "", 401}, {"DIGEST root:pw", "", 200},
	} {
		if w := send(h, http.MethodGet, "/commands/dump", "Authorization", tc.auth, "Sec-Fetch-Site", tc.site); w.Code != tc.code {
			t.Errorf("%q from %q: %d %s", tc.auth, tc.site, w.Code, w.Body)
		}
	}
}
