package control_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/control"
)

// TestBadInput checks that every response is JSON, has the right status, and names
// the error.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/", "", 404, "GET /v1 lists"},
		{"GET", "/v2/node", "", 404, "/v2/node"},
		{"POST", "/v1/dump", "", 405, "POST /v1/dump: want GET"},
		{"PATCH", "/v1/node", "", 405, "want GET or PUT or DELETE"},
		{"GET", "/v1/node", "", 400, "path is missing"},
		{"GET", "/v1/node?path=a", "", 400, "a"},
		{"GET", "/v1/node?path=/a/", "", 400, "/a/"},
		{"GET", "/v1/node?path=/a", "", 404, "there is no znode /a"},
		{"GET", "/v1/node?pfad=/a", "", 400, `unknown parameter "pfad"; want path, server`},
		{"GET", "/v1/node?path=/&server=x", "", 400, `server "x"`},
		{"GET", "/v1/node?path=/&server=2", "", 404, "there is no server 2, only 1 to 1"},
		{"GET", "/v1/children?path=/a", "", 404, "/a"},
		{"GET", "/v1/children", "", 400, "path is missing"},
		{"GET", "/v1/exists", "", 400, "path is missing"},
		{"DELETE", "/v1/node", "", 400, "path is missing"},
		{"PUT", "/v1/node", "{", 400, "the body"},
		{"PUT", "/v1/node", "{} {}", 400, "more than one JSON value"},
		{"PUT", "/v1/node", `{"path": 1}`, 400, "path"},
		{"PUT", "/v1/node", `{"path": "/a", "value": "1"}`, 400, `unknown field "value"`},
		{"PUT", "/v1/node", `{"path": "/a", "data": "1", "base64": "MQ=="}`, 400, "mutually exclusive"},
		{"PUT", "/v1/node", `{"path": "/a", "base64": "?"}`, 400, "base64"},
		{"PUT", "/v1/node", `{"path": ""}`, 400, "path is missing"},
		{"POST", "/v1/seed", "", 400, "0 of nodes, tree, yaml and dump"},
		{"POST", "/v1/seed", `{"tree": {"a": "1"}, "yaml": "a: 1"}`, 400, "2 of nodes, tree, yaml and dump"},
		{"POST", "/v1/seed", `{"tree": ["a"]}`, 400, "SeedJSON"},
		{"POST", "/v1/seed", `{"yaml": "{"}`, 400, "SeedYAML"},
		{"POST", "/v1/seed", `{"dump": "a"}`, 400, "SeedText"},
		{"POST", "/v1/seed", `{"nodes": {"a": ""}}`, 400, "nodes"},
		{"POST", "/v1/seed", `{"nodes": {"/a": 1}}`, 400, "nodes /a: 1 is neither"},
		{"POST", "/v1/seed", `{"nodes": {"/a": {"text": "1"}}}`, 400, "nodes /a"},
		{"POST", "/v1/snapshots/7/reset", "", 404, `there is no snapshot "7"`},
		{"DELETE", "/v1/snapshots/7", "", 404, `there is no snapshot "7"`},
		{"POST", "/v1/sessions/me/expire", "", 400, `session "me"`},
		{"POST", "/v1/sessions/0xz/expire", "", 400, `session "0xz"`},
		{"POST", "/v1/sessions/0x77/expire", "", 404, "there is no session 0x77"},
		{"POST", "/v1/sessions/0x77/drop", "", 404, "there is no session 0x77"},
		{"POST", "/v1/sessions/0x77/hang", "", 404, "there is no session 0x77"},
		{"POST", "/v1/sessions/" + sid(c) + "/resume", "", 404, "no connection of session " + sid(c) + " hangs"},
		{"POST", "/v1/sessions/x/resume", "", 400, `session "x"`},
		{"POST", "/v1/connections/refuse?server=9", "", 404, "there is no server 9"},
		{"POST", "/v1/advance", "", 400, "duration is missing"},
		{"POST", "/v1/advance", `{"duration": "soon"}`, 400, `duration "soon"`},
		{"POST", "/v1/advance", `{"duration": -1}`, 400, "want 0 or more"},
		{"POST", "/v1/advance", `{"duration": []}`, 400, "duration []"},
		{"POST", "/v1/wait", "", 400, "0 conditions"},
		{"POST", "/v1/wait", `{"exists": "/a", "gone": "/a"}`, 400, "2 conditions"},
		{"POST", "/v1/wait", `{"exists": "a"}`, 400, "exists"},
		{"POST", "/v1/wait", `{"watch": "/a", "kinds": ["all"]}`, 400, `kind "all": want one of`},
		{"POST", "/v1/wait", `{"exists": "/a", "kinds": ["data"]}`, 400, "kinds belongs to watch"},
		{"POST", "/v1/wait", `{"exists": "/a", "count": 1}`, 400, "count belongs to requests"},
		{"POST", "/v1/wait", `{"exists": "/a", "timeout": "1h"}`, 400, "longer than"},
		{"POST", "/v1/wait", `{"fault": "9"}`, 404, `there is no fault "9"`},
		{"POST", "/v1/wait", `{"connected": "me"}`, 400, `session "me"`},
		{"POST", "/v1/faults", "", 400, `action "": want one of`},
		{"POST", "/v1/faults", `{"action": "explode"}`, 400, `action "explode"`},
		{"POST", "/v1/faults", `{"action": "fail"}`, 400, "code is missing"},
		{"POST", "/v1/faults", `{"action": "fail", "code": "Nope"}`, 400, `code "Nope"`},
		{"POST", "/v1/faults", `{"action": "fail", "code": -99}`, 400, "code -99"},
		{"POST", "/v1/faults", `{"action": "delay"}`, 400, "delay is missing"},
		{"POST", "/v1/faults", `{"action": "lose", "code": "NoNode"}`, 400, "code is for the actions fail and failAll"},
		{"POST", "/v1/faults", `{"action": "lose", "delay": "1s"}`, 400, "delay is for the action delay"},
		{"POST", "/v1/faults", `{"action": "lose", "nth": -1}`, 400, "nth -1"},
		{"POST", "/v1/faults", `{"action": "lose", "op": "fly"}`, 400, `op "fly": want one of addWatch`},
		{"POST", "/v1/faults", `{"action": "lose", "op": 1}`, 400, "op 1"},
		{"GET", "/v1/faults/9", "", 404, `there is no fault "9"`},
		{"DELETE", "/v1/faults/9", "", 404, `there is no fault "9"`},
		{"GET", "/v1/requests?op=fly", "", 400, `op "fly"`},
		{"GET", "/v1/requests?session=me", "", 400, `session "me"`},
		{"POST", "/v1/servers/1/start", "", 409, "it was not killed"},
		{"POST", "/v1/servers/1/filldisk", "", 409, "OnDisk"},
		{"POST", "/v1/links/slow", `{"servers": [1, 2], "delay": "1s"}`, 409, "--servers 3"},
		{"POST", "/v1/sessions/0x77/slow", `{"delay": "1s"}`, 404, "there is no session 0x77"},
		{"POST", "/v1/sessions/" + sid(c) + "/slow", "", 400, "missing delay"},
		{"POST", "/v1/sessions/" + sid(c) + "/fast", "", 404, "no connection of session " + sid(c) + " is slow"},
		{"POST", "/v1/connections/slow", `{"bytesPerSecond": -1}`, 400, "missing delay"},
		{"POST", "/v1/recordings", `{"op": "fly"}`, 400, `op "fly"`},
		{"GET", "/v1/recordings/9", "", 404, `there is no recording "9"`},
		{"DELETE", "/v1/recordings/9", "", 404, `there is no recording "9"`},
		{"POST", "/v1/servers/2/kill", "", 404, "there is no server 2"},
		{"POST", "/v1/servers/one/kill", "", 400, `server "one"`},
		{"POST", "/v1/partition", `{"groups": [[1]]}`, 409, "--servers 3"},
		{"POST", "/v1/heal", "", 409, "--servers 3"},
		{"POST", "/v1/leader", "", 409, "--servers 3"},
	} {
		status, m := b.ask(tc.method, tc.path, tc.body)
		text, _ := m["error"].(string)
		if status != tc.status || !strings.Contains(text, tc.want) || m["kind"] == nil {
			t.Errorf("%s %s %s: %d %v, want %d with %q", tc.method, tc.path, tc.body, status, m, tc.status, tc.want)
		}
	}
}

func TestBadInputToACluster(t *testing.T) {
	t.Parallel()
	b := start(t, 2)
	for _, tc := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/partition", "", 400, "groups is missing"},
		{"/v1/partition", `{"groups": [[1], [1]]}`, 400, "server 1 is named twice"},
		{"/v1/partition", `{"groups": [[3]]}`, 404, "there is no server 3"},
		{"/v1/faults", `{"action": "lose"}`, 400, "which server?"},
		{"/v1/faults", `{"action": "lose", "session": "0x77"}`, 404, "session 0x77 is not connected to any server"},
		{"/v1/servers/1/restart", "", 409, "was not killed"},
		{"/v1/links/slow", `{"servers": [1], "delay": "1s"}`, 400, "want two"},
		{"/v1/links/slow", `{"servers": [1, 2]}`, 400, "delay is missing"},
		{"/v1/links/slow", `{"servers": [1, 9], "delay": "1s"}`, 404, "there is no server 9"},
	} {
		status, m := b.ask("POST", tc.path, tc.body)
		if text, _ := m["error"].(string); status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s %s: %d %v, want %d with %q", tc.path, tc.body, status, m, tc.status, tc.want)
		}
	}
}

// The page should describe all existing endpoints, and no others.
func TestThePageHasEveryEndpoint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guide/testserver.md")
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, m := range regexp.MustCompile("(?m)^\\| ?`((?:GET|PUT|POST|DELETE) /v1[^` ?]*)").FindAllStringSubmatch(string(page), -1) {
		described = append(described, m[1])
	}
	for _, e := range control.Endpoints() {
		if !slices.Contains(described, e) {
			t.Errorf("%s is not described", e)
		}
	}
	for _, e := range described {
		if !slices.Contains(control.Endpoints(), e) {
			t.Errorf("%s is described but does not exist", e)
		}
	}
}
