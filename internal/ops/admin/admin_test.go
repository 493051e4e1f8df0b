package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// ask sends one request as the administrator and returns the response.
func ask(t *testing.T, h http.Handler, method, target string) (code int, body string) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, nil)
	r.Header.Set("Authorization", rootAuth)
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// fields runs a command, which must return status 200, and returns the fields.
func fields(t *testing.T, h http.Handler, command string) map[string]any {
	t.Helper()
	code, body := ask(t, h, http.MethodGet, "/commands/"+command)
	if code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", command, code, body)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%s: %v in %s", command, err, body)
	}
	return m
}

// byKey lists the objects with keys that are data.
var byKey = []string{"session_id_to_ephemeral_paths", "expiry_time_to_session_ids", "session_id_to_watched_paths", "path_to_session_ids", "current_config"}

// shape lists the paths of a JSON value with their types.
func shape(v any, path string, out map[string]bool) {
	typ := "null"
	switch v := v.(type) {
	case map[string]any:
		typ = "object"
		for k, x := range v {
			if slices.Contains(byKey, path) {
				k = "*"
			}
			shape(x, strings.TrimPrefix(path+"."+k, "."), out)
		}
	case []any:
		typ = "array"
		for _, x := range v {
			shape(x, path+"[]", out)
		}
	case string:
		typ = "string"
	case bool:
		typ = "bool"
	case float64:
		typ = "number"
	}
	if path != "" {
		out[path+" "+typ] = true
	}
}

// golden returns the shapes of a real server's responses, by command.
func golden(t *testing.T, role string) map[string]map[string]bool {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/" + role + ".txt"))(t)
	m := map[string]map[string]bool{}
	for line := range strings.Lines(string(text)) {
		command, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if m[command] == nil {
			m[command] = map[string]bool{}
		}
		m[command][rest] = true
	}
	return m
}

// empty reports whether the list or map that contains the entry was empty on the real
// server.
func empty(want map[string]bool, entry string) bool {
	at := strings.IndexAny(entry, "[*")
	if at < 0 {
		return false
	}
	for k := range want {
		if strings.HasPrefix(k, entry[:at+1]) {
			return false
		}
	}
	return true
}

// TestFieldsOfEveryCommand compares the responses with ZooKeeper 3.9.5, in its four roles.
func TestFieldsOfEveryCommand(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"standalone", "leader", "follower", "observer"} {
		h := Handler(&fake{role: role}, DefaultURL, Options{})
		commands := golden(t, role)
		if len(commands) < 24 {
			t.Fatalf("%s: only %d commands", role, len(commands))
		}
		for command, want := range commands {
			got := map[string]bool{}
			shape(fields(t, h, command), "", got)
			for k := range want {
				if !got[k] && command != "monitor" && !strings.HasPrefix(k, "observers[]") &&
					!(command == "initial_configuration" && got[strings.ReplaceAll(k, "null", "string")]) {
					t.Errorf("%s %s lacks %s", role, command, k)
				}
			}
			for k := range got {
				if !want[k] && !empty(want, k) {
					t.Errorf("%s %s has %s", role, command, k)
				}
			}
		}
	}
}

func TestEveryNameIsAnswered(t *testing.T) {
	t.Parallel()
	h := Handler(&fake{role: "standalone"}, DefaultURL, Options{})
	for _, names := range [][]string{
		{"configuration", "conf", "config"}, {"connections", "cons"}, {"connection_stat_reset", "crst"}, {"dirs"}, {"dump"},
		{"environment", "env", "envi"}, {"get_trace_mask", "gtmk"}, {"hash"}, {"initial_configuration", "icfg"},
		{"is_read_only", "isro"}, {"last_snapshot", "lsnp"}, {"leader", "lead"}, {"monitor", "mntr"}, {"observers", "obsr"},
		{"observer_connection_stat_reset", "orst"}, {"ruok"}, {"server_stats", "srvr"}, {"set_trace_mask", "stmk"},
		{"stat_reset", "srst"}, {"stats", "stat"}, {"system_properties", "sysp"}, {"voting_view"}, {"watches", "wchc"},
		{"watches_by_path", "wchp"}, {"watch_summary", "wchs"}, {"zabstate"},
	} {
		for _, name := range names {
			if got := fields(t, h, name); got["command"] != names[0] {
				t.Errorf("%s is answered as %v: %v", name, got["command"], got["error"])
			}
		}
	}
	for _, name := range []string{"nonsense", "RUOK", "ruok/", "ruok/x"} {
		if got := fields(t, h, name); got["command"] != name || got["error"] != "Unknown command: "+name {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := fields(t, h, "leader"); got["error"] != "server is not initialized" {
		t.Errorf("leader of a standalone server: %v", got)
	}
}

func TestCommandsChangeTheServer(t *testing.T) {
	t.Parallel()
	f := &fake{role: "standalone"}
	h := Handler(f, DefaultURL, Options{})
	for query, want := range map[string]string{
		"": "setTraceMask requires long traceMask argument", "?traceMask=0x10": "setTraceMask requires long traceMask argument, got 0x10",
	} {
		if got := fields(t, h, "stmk"+query); got["error"] != want {
			t.Errorf("stmk%s: %v", query, got)
		}
	}
	if got := fields(t, h, "stmk?traceMask=5"); got["tracemask"] != 5.0 || f.mask != 5 {
		t.Errorf("stmk: %v, mask %d", got, f.mask)
	}
	fields(t, h, "srst")
	fields(t, h, "crst")
	if f.resets != 1 || f.connReset != 1 {
		t.Errorf("%d and %d resets", f.resets, f.connReset)
	}
	if code, _ := ask(t, h, http.MethodPost, "/commands/srst"); code != http.StatusMethodNotAllowed || f.resets != 1 {
		t.Errorf("POST: %d, %d resets", code, f.resets)
	}
}

func TestWithoutAnEnsemble(t *testing.T) {
	t.Parallel()
	h := Handler(&fake{}, DefaultURL, Options{})
	for command := range golden(t, "standalone") {
		got := fields(t, h, command)
		always := slices.Contains([]string{"environment", "get_trace_mask", "zabstate"}, command)
		if always != (got["error"] == nil) || !always && got["error"] != errNotServing {
			t.Errorf("%s: %v", command, got["error"])
		}
	}
	if got := fields(t, h, "zabstate"); got["zabstate"] != "" || got["voting"] != false {
		t.Errorf("zabstate: %v", got)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		src   *fake
		ready int
	}{
		{&fake{role: "follower"}, http.StatusOK},
		{&fake{}, http.StatusServiceUnavailable},
		{&fake{role: "follower", readOnly: true}, http.StatusServiceUnavailable},
	} {
		for _, url := range []string{DefaultURL, "/"} {
			h := Handler(tc.src, url, Options{})
			if code, body := ask(t, h, http.MethodGet, "/livez"); code != http.StatusOK || body != "ok\n" {
				t.Errorf("livez of %+v: %d %q", tc.src, code, body)
			}
			if code, body := ask(t, h, http.MethodGet, "/readyz"); code != tc.ready || body == "" {
				t.Errorf("readyz of %+v: %d %q", tc.src, code, body)
			}
		}
	}
}

// TestList compares with ZooKeeper's page.
func TestList(t *testing.T) {
	t.Parallel()
	want := must.Get(os.ReadFile("testdata/commands.html"))(t)
	for url, prefix := range map[string]string{"/commands": "/commands", "/a/b/": "/a/b", "/": ""} {
		h := Handler(&fake{role: "standalone"}, url, Options{})
		for _, target := range []string{prefix, prefix + "/"} {
			if target == "" {
				continue
			}
			code, body := ask(t, h, http.MethodGet, target)
			if code != http.StatusOK || body != strings.ReplaceAll(string(want), "/commands/", prefix+"/") {
				t.Errorf("%s: %d %s", target, code, body)
			}
		}
		if code, _ := ask(t, h, http.MethodGet, prefix+"/ruok"); code != http.StatusOK {
			t.Errorf("%s/ruok: %d", prefix, code)
		}
	}
	if code, _ := ask(t, Handler(&fake{role: "standalone"}, DefaultURL, Options{}), http.MethodGet, "/elsewhere"); code != http.StatusNotFound {
		t.Errorf("another path: %d", code)
	}
}

func TestSpelling(t *testing.T) {
	t.Parallel()
	h := Handler(&fake{role: "leader"}, DefaultURL, Options{})
	for command, want := range map[string]string{
		"ruok": "{\n  \"command\" : \"ruok\",\n  \"error\" : null\n}",
		"dump": `{
  "expiry_time_to_session_ids" : {
    "2000" : [ ],
    "4000" : [ 7 ]
  },
  "session_id_to_ephemeral_paths" : {
    "-1" : [ "/c" ],
    "7" : [ "/a", "/b" ]
  },
  "command" : "dump",
  "error" : null
}`,
		"hash": `{
  "digests" : [ {
    "zxid" : 128,
    "digest" : -9223372036854775808,
    "digest_version" : 2
  } ],
  "command" : "hash",
  "error" : null
}`,
		"monitor": `{
  "version" : "3.9.5-x",
  "avg_latency" : 0.25,
  "znode_count" : 7,
  "command" : "monitor",
  "error" : null
}`,
		"last_snapshot": `{
  "zxid" : "4f",
  "timestamp" : 1795292229,
  "command" : "last_snapshot",
  "error" : null
}`,
	} {
		if _, got := ask(t, h, http.MethodGet, "/commands/"+command); got != want {
			t.Errorf("%s: %s", command, got)
		}
	}
	var b strings.Builder
	must.Do(t, (object{{"a", "<é&\"\\\x01\n>"}, {"b", object{}}, {"c", []object{}}, {"d", true}}).encode(&b))
	if got := b.String(); got !=
		"{\n  \"a\" : \"<é&\\\"\\\\\\u0001\\n>\",\n  \"b\" : { },\n  \"c\" : [ ],\n  \"d\" : true\n}" {
		t.Error(got)
	}
}

func TestEnsemble(t *testing.T) {
	t.Parallel()
	view := fields(t, Handler(&fake{role: "leader"}, DefaultURL, Options{}), "voting_view")["current_config"].(map[string]any)
	if got, want := fmt.Sprint(view["2"]), "map[client_address:127.0.0.1:2182 election_addresses:[[0:0:0:0:0:0:0:1]:3882] learner_type:participant server_addresses:[[0:0:0:0:0:0:0:1]:2882]]"; got != want {
		t.Errorf("server 2: %s", got)
	}
	if got := view["3"].(map[string]any)["client_address"]; got != "0.0.0.0:2181" {
		t.Errorf("the server's own client address: %v", got)
	}
	if len(view) != 3 {
		t.Errorf("voters: %v", view)
	}
	for role, want := range map[string]string{"leader": "true 3 a.example", "follower": "false 3 a.example", "observer": "false 3 a.example"} {
		h := Handler(&fake{role: role}, DefaultURL, Options{})
		got := fields(t, h, "leader")
		if s := fmt.Sprint(got["is_leader"], " ", got["leader_id"], " ", got["leader_ip"]); s != want {
			t.Errorf("%s: leader %s", role, s)
		}
		zab := fields(t, h, "zabstate")
		if zab["voting"] != (role != "observer") || zab["last_zxid"] != "0x100000005" || zab["zab_epoch"] != 1.0 || zab["zab_counter"] != 5.0 {
			t.Errorf("%s: zabstate %v", role, zab)
		}
	}
}
