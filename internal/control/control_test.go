package control_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/control"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestIndex(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	if r := b.Ready(); r.PID != os.Getpid() || r.ConnectString == "" || r.Control == "" {
		t.Errorf("%+v", r)
	}
	if n := len(list(b.do("GET", "/v1", ""), "endpoints")); n != len(control.Endpoints()) {
		t.Errorf("%d endpoints are listed, there are %d", n, len(control.Endpoints()))
	}
	b.want("GET", "/v1/leader", "", "leader", 1)
	b.do("POST", "/v1/stop", "")
	b.do("POST", "/v1/stop", "")
	<-b.Stopped()
}

func TestZnodes(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	b.do("PUT", "/v1/node", `{"path": "/app/config", "data": "v1"}`)
	b.want("GET", "/v1/node?path=/app/config", "", "data", "v1")
	b.want("GET", "/v1/exists?path=/app/config", "", "exists", true)
	b.want("GET", "/v1/exists?path=/nothing", "", "exists", false)
	b.do("PUT", "/v1/node", `{"path": "/app/config", "base64": "/w=="}`)
	b.want("GET", "/v1/node?path=/app/config", "", "base64", "/w==")
	m := b.do("GET", "/v1/node?path=/app/config", "")
	if st := m["stat"].(map[string]any); fmt.Sprintf("%v %v %v %v", st["version"], st["dataLength"], st["ephemeralOwner"], m["children"]) != "1 1 0x0 []" {
		t.Errorf("%v", m)
	}
	b.do("POST", "/v1/seed", `{"nodes": {"/a/b": "1", "/a/c": {"base64": "/w=="}}}`)
	b.want("GET", "/v1/children?path=/a", "", "children", "[b c]")
	b.want("GET", "/v1/dump", "", "dump", "/\n  a\n    b = \"1\"\n    c = \"\\xff\"\n  app\n    config = \"\\xff\"\n")
	b.do("POST", "/v1/seed", `{"tree": {"t": {"": "of t", "json": 1}}}`)
	b.do("POST", "/v1/seed", `{"yaml": "t: {yaml: two}"}`)
	b.do("POST", "/v1/seed", `{"dump": "/\n  t\n    text = \"three\"\n"}`)
	b.want("GET", "/v1/children?path=/t", "", "children", "[json text yaml]")
	b.want("GET", "/v1/node?path=/t/yaml", "", "data", "two")
	b.do("DELETE", "/v1/node?path=/a", "")
	b.want("GET", "/v1/exists?path=/a/b", "", "exists", false)
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	b.do("PUT", "/v1/node", `{"path": "/a", "data": "before"}`)
	id := b.do("POST", "/v1/snapshots", "")["id"].(string)
	b.do("PUT", "/v1/node", `{"path": "/a", "data": "after"}`)
	fault := b.do("POST", "/v1/faults", `{"action": "lose"}`)["id"].(string)
	b.do("POST", "/v1/snapshots/"+id+"/reset", "")
	b.want("GET", "/v1/node?path=/a", "", "data", "before")
	if status, _ := b.ask("GET", "/v1/faults/"+fault, ""); status != http.StatusNotFound {
		t.Errorf("the fault from before the reset remains: %d", status)
	}
	b.do("DELETE", "/v1/snapshots/"+id, "")
	if status, _ := b.ask("POST", "/v1/snapshots/"+id+"/reset", ""); status != http.StatusNotFound {
		t.Errorf("back to a snapshot that was deleted: %d", status)
	}
}

func TestSessionsAndTime(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	if _, err := c.Create(t.Context(), "/me", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	all := list(b.do("GET", "/v1/sessions", ""), "sessions")
	if len(all) != 1 || all[0]["id"] != sid(c) || all[0]["connected"] != true || fmt.Sprint(all[0]["timeoutMs"]) != "10000" || all[0]["address"] == "" {
		t.Errorf("sessions %v, want the one of %s", all, sid(c))
	}
	b.want("GET", "/v1/ephemerals", "", "ephemerals", fmt.Sprintf("map[/me:%s]", sid(c)))

	b.do("POST", "/v1/advance", `{"duration": "1h"}`) // connected clients stay alive
	b.want("GET", "/v1/exists?path=/me", "", "exists", true)
	b.do("POST", "/v1/sessions/"+sid(c)+"/hang", "")
	b.do("POST", "/v1/advance", `{"duration": 5000}`)
	b.want("GET", "/v1/exists?path=/me", "", "exists", true)
	b.do("POST", "/v1/sessions/"+sid(c)+"/resume", "")
	if _, _, err := c.Exists(t.Context(), "/me"); err != nil {
		t.Errorf("after resume: %v", err)
	}
	b.do("POST", "/v1/sessions/"+sid(c)+"/hang", "")
	b.do("POST", "/v1/advance", `{"duration": "13s"}`)
	b.want("GET", "/v1/exists?path=/me", "", "exists", false)
	b.do("POST", "/v1/wait", fmt.Sprintf(`{"expired": %q}`, sid(c)))
}

func TestExpireAndDrop(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	id := sid(c)
	b.do("POST", "/v1/wait", fmt.Sprintf(`{"connected": %q}`, id))
	b.do("POST", "/v1/connections/refuse", "")
	b.do("POST", "/v1/sessions/"+id+"/drop", "")
	b.do("POST", "/v1/wait", fmt.Sprintf(`{"disconnected": %d}`, c.Session().ID))
	b.do("POST", "/v1/connections/accept", "")
	b.do("POST", "/v1/wait", fmt.Sprintf(`{"connected": %q}`, id)) // the client reconnects
	b.do("POST", "/v1/connections/refuse", "")
	b.do("POST", "/v1/connections/drop", "")
	b.want("GET", "/v1/sessions", "", "sessions", fmt.Sprintf("[map[connected:false id:%s timeoutMs:10000]]", id))
	b.do("POST", "/v1/sessions/"+id+"/expire", "")
	b.do("POST", "/v1/connections/accept", "")
	b.do("POST", "/v1/wait", fmt.Sprintf(`{"expired": %q}`, id))
}

func TestWatchesAndWaits(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	done := make(chan string)
	go func() {
		status, m := b.ask("POST", "/v1/wait", `{"exists": "/a", "timeout": "60s"}`)
		done <- fmt.Sprint(status, m)
	}()
	if _, err := c.Create(t.Context(), "/a", nil); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != "200 map[]" {
		t.Errorf("the wait for /a ended with %s", got)
	}
	if _, _, _, err := c.GetW(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	b.do("POST", "/v1/wait", `{"watch": "/a", "kinds": ["data", "child"]}`)
	b.want("GET", "/v1/watches", "", "watches", fmt.Sprintf("[map[kind:data path:/a server:1 session:%s]]", sid(c)))
	b.do("POST", "/v1/wait", `{"gone": "/b"}`)
	b.do("POST", "/v1/wait", `{"serving": true}`)
	status, m := b.ask("POST", "/v1/wait", `{"exists": "/b", "timeout": 20}`)
	if status != http.StatusGatewayTimeout || m["kind"] != "timeout" || m["error"] != "not within 20ms: /b exists" {
		t.Errorf("%d %v", status, m)
	}
}

// Waits should end when the test server ends.
func TestCloseEndsWaits(t *testing.T) {
	t.Parallel()
	ts, err := control.Start(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	begun, ended := make(chan struct{}), make(chan int, 1)
	go func() {
		body := &announced{Reader: strings.NewReader(`{"exists": "/never", "timeout": "10m"}`), read: begun}
		resp, err := client.Post(ts.Ready().Control+"/v1/wait", "application/json", body)
		if err != nil {
			ended <- 0
			return
		}
		resp.Body.Close()
		ended <- resp.StatusCode
	}()
	<-begun
	if err := ts.Close(); err != nil {
		t.Error(err)
	}
	if got := <-ended; got != http.StatusGatewayTimeout && got != 0 { // 0: closed before the request was read
		t.Errorf("the wait ended with %d", got)
	}
}

// announced reports when it's read.
type announced struct {
	io.Reader
	read chan struct{}
}

func (a *announced) Read(b []byte) (int, error) {
	if a.read != nil {
		close(a.read)
		a.read = nil
	}
	return a.Reader.Read(b)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	ctx := t.Context()
	for _, name := range []string{`"NoAuth"`, `"NOAUTH"`, `"NoAuthError"`, "-102", `"-102"`} {
		id := b.do("POST", "/v1/faults", `{"action": "fail", "op": "getData", "path": "/a*", "code": `+name+`}`)["id"].(string)
		b.want("GET", "/v1/faults/"+id, "", "happened", false)
		if _, _, err := c.Get(ctx, "/anything"); !errors.Is(err, proto.ErrNoAuth) {
			t.Errorf("code %s: %v", name, err)
		}
		b.want("GET", "/v1/faults/"+id, "", "happened", true)
	}
	if !b.logged("planned: getData /a* fails with NoAuth") || !b.logged("getData /anything of session "+sid(c)+" fails with NoAuth") {
		t.Errorf("the log lacks the faults: %q", b.log)
	}
	b.do("POST", "/v1/faults", `{"action": "failAll", "op": "getACL", "code": "SystemError"}`)
	for range 2 {
		if _, _, err := c.GetACL(ctx, "/"); !errors.Is(err, proto.ErrSystemError) {
			t.Errorf("getACL: %v", err)
		}
	}
	if n := len(list(b.do("GET", "/v1/faults", ""), "faults")); n != 6 {
		t.Errorf("%d faults are listed, want 6", n)
	}
	b.do("DELETE", "/v1/faults", "")
	b.want("GET", "/v1/faults", "", "faults", "[]")
	if _, _, err := c.GetACL(ctx, "/"); err != nil {
		t.Errorf("a cancelled fault: %v", err)
	}

	b.do("POST", "/v1/faults", `{"action": "loseReply", "op": "create", "session": "`+sid(c)+`"}`)
	if _, err := c.Create(ctx, "/job", nil); err == nil {
		t.Error("the reply of create was not lost")
	}
	b.want("GET", "/v1/exists?path=/job", "", "exists", true)
	b.do("POST", "/v1/faults", `{"action": "lose", "op": "create", "nth": 2}`)
	_, first := c.Create(ctx, "/one", nil)
	_, second := c.Create(ctx, "/two", nil)
	if first != nil || second == nil {
		t.Errorf("the first create: %v, the second: %v", first, second)
	}
	b.want("GET", "/v1/exists?path=/two", "", "exists", false)
}

func TestDelayAndCancel(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	id := b.do("POST", "/v1/faults", `{"action": "delay", "op": "exists", "delay": "3h"}`)["id"].(string)
	done := make(chan error)
	go func() {
		_, _, err := c.Exists(t.Context(), "/a")
		done <- err
	}()
	b.do("POST", "/v1/wait", `{"fault": "`+id+`"}`)
	b.do("POST", "/v1/advance", `{"duration": "3h"}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	id = b.do("POST", "/v1/faults", `{"action": "fail", "code": "SystemError"}`)["id"].(string)
	b.do("DELETE", "/v1/faults/"+id, "")
	if _, _, err := c.Exists(t.Context(), "/a"); err != nil {
		t.Errorf("a cancelled fault: %v", err)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	for range 3 {
		if _, _, err := c.Exists(t.Context(), "/a"); err != nil {
			t.Fatal(err)
		}
	}
	b.do("POST", "/v1/wait", `{"requests": {"op": "exists", "path": "/a"}, "count": 3}`)
	b.want("GET", "/v1/requests?op=exists&path=/*", "", "requests", fmt.Sprintf("[map[count:3 op:exists path:/a session:%s]]", sid(c)))
	b.want("GET", "/v1/requests?op=getData", "", "count", 0)
	b.want("GET", "/v1/requests?session="+sid(c), "", "count", 3)
	b.do("DELETE", "/v1/requests", "")
	b.want("GET", "/v1/requests", "", "count", 0)
}

func TestRecordings(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	id := b.do("POST", "/v1/recordings", `{"path": "/a", "session": "`+sid(c)+`"}`)["id"].(string)
	for _, path := range []string{"/a", "/b"} {
		if _, err := c.Create(t.Context(), path, []byte("1")); err != nil {
			t.Fatal(err)
		}
	}
	lines := fmt.Sprint(b.do("GET", "/v1/recordings/"+id, "")["lines"])
	if !strings.Contains(lines, sid(c)+" > ") || !strings.Contains(lines, sid(c)+" < ") || !strings.Contains(lines, `/a "1"`) || strings.Contains(lines, "/b") {
		t.Errorf("recorded: %s", lines)
	}
	b.do("DELETE", "/v1/recordings/"+id, "")
}

func TestSlowConnections(t *testing.T) {
	t.Parallel()
	b := start(t, 0)
	c := b.client()
	exists := func() <-chan error {
		done := make(chan error, 1)
		go func() {
			_, _, err := c.Exists(t.Context(), "/")
			done <- err
		}()
		return done
	}
	for slow, fast := range map[string]string{"/v1/sessions/" + sid(c) + "/slow": "/v1/sessions/" + sid(c) + "/fast", "/v1/connections/slow": "/v1/connections/fast"} {
		b.do("POST", slow, `{"delay": "4s"}`)
		done := exists()
		for waiting := true; waiting; { // a round trip; the clock may move before the request is in flight
			b.do("POST", "/v1/advance", `{"duration": "4s"}`)
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				waiting = false
			default:
			}
		}
		b.do("POST", fast, "")
		if err := <-exists(); err != nil {
			t.Error(err)
		}
		if !b.logged("slow: 4s") || !b.logged("full speed again") {
			t.Errorf("%s: missing in the log: %q", slow, b.log)
		}
	}
}

// We should be able to kill and pause a standalone server, make it read-only, and fill its
// disk.
func TestOneServer(t *testing.T) {
	t.Parallel()
	b := start(t, 0, zktest.OnDisk())
	serving := func() string {
		one := list(b.do("GET", "/v1/servers", ""), "servers")[0]
		return fmt.Sprintf("running %v, paused %v, serving %v, readOnly %v", one["running"], one["paused"], one["serving"], one["readOnly"])
	}
	b.do("PUT", "/v1/node", `{"path": "/a", "data": "1"}`)
	for _, step := range []struct{ do, state string }{
		{"pause", "running true, paused true, serving true, readOnly false"},
		{"resume", "running true, paused false, serving true, readOnly false"},
		{"readonly", "running true, paused false, serving true, readOnly true"},
		{"writable", "running true, paused false, serving true, readOnly false"},
		{"filldisk", "running true, paused false, serving true, readOnly false"},
		{"healdisk", "running true, paused false, serving true, readOnly false"},
		{"failfsync", "running true, paused false, serving true, readOnly false"},
		{"healdisk", "running true, paused false, serving true, readOnly false"},
		{"kill", "running false, paused false, serving false, readOnly false"},
		{"restart", "running true, paused false, serving true, readOnly false"},
	} {
		b.do("POST", "/v1/servers/1/"+step.do, "")
		if step.do != "readonly" && step.do != "writable" { // these need a moment
			if got := serving(); got != step.state {
				t.Errorf("after %s: %s, want %s", step.do, got, step.state)
			}
		}
	}
	b.want("GET", "/v1/node?path=/a", "", "data", "1")
	if !b.logged("the disk is full") || !b.logged("fsync fails") || !b.logged("read-only mode is over") {
		t.Errorf("missing in the log: %q", b.log)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	b := start(t, 3)
	if n := strings.Count(b.Ready().ConnectString, ","); n != 2 {
		t.Errorf("connectString %q", b.Ready().ConnectString)
	}
	b.do("PUT", "/v1/node", `{"path": "/a", "data": "1"}`)
	for id := 1; id <= 3; id++ {
		b.want("GET", fmt.Sprintf("/v1/node?path=/a&server=%d", id), "", "data", "1")
	}
	old := fmt.Sprint(b.do("GET", "/v1/leader", "")["leader"])
	lead := fmt.Sprint(b.do("POST", "/v1/leader", "")["leader"])
	if old == lead {
		t.Errorf("server %s still leads", lead)
	}
	follower := map[string]string{"1": "2", "2": "3", "3": "1"}[lead]
	state := func(id, field string) string {
		for _, s := range list(b.do("GET", "/v1/servers", ""), "servers") {
			if fmt.Sprint(s["id"]) == id {
				return fmt.Sprint(s[field])
			}
		}
		return ""
	}
	if state(lead, "mode") != "leader" || state(follower, "running") != "true" {
		t.Errorf("%v", b.do("GET", "/v1/servers", ""))
	}

	b.do("POST", "/v1/partition", "{\"groups\": [["+follower+"]]}")
	b.do("PUT", "/v1/node", `{"path": "/a", "data": "2"}`)
	b.want("GET", "/v1/node?path=/a&server="+follower, "", "data", "1")
	b.do("POST", "/v1/heal", "")
	b.do("POST", "/v1/wait", `{"serving": true, "timeout": "60s"}`)

	b.do("POST", "/v1/links/slow", `{"servers": [`+lead+`, `+follower+`], "delay": "1ms"}`)
	b.do("PUT", "/v1/node", `{"path": "/a", "data": "2"}`)
	b.do("POST", "/v1/links/fast", "")
	b.do("POST", "/v1/servers/"+follower+"/pause", "")
	if state(follower, "paused") != "true" {
		t.Error("it is not paused")
	}
	b.do("POST", "/v1/servers/"+follower+"/resume", "")
	b.do("POST", "/v1/servers/"+follower+"/kill", "")
	if state(follower, "running") != "false" {
		t.Error("it was not killed")
	}
	b.do("POST", "/v1/servers/"+follower+"/start", "")
	b.do("POST", "/v1/wait", `{"serving": true, "timeout": "60s"}`)
	b.do("POST", "/v1/servers/"+follower+"/kill", "")
	b.do("POST", "/v1/servers/"+follower+"/restart", "")
	b.want("GET", "/v1/node?path=/a&server="+follower, "", "data", "2")
	if status, m := b.ask("POST", "/v1/servers/"+follower+"/start", ""); status != http.StatusConflict || m["kind"] != "failed" {
		t.Errorf("the start of a server that runs: %d %v", status, m)
	}
}

// In a cluster, an operation on a client should run on the server that the client is
// connected to.
func TestClientsOfACluster(t *testing.T) {
	t.Parallel()
	b := start(t, 3)
	for range 3 {
		c := b.client()
		b.do("POST", "/v1/faults", `{"action": "fail", "session": "`+sid(c)+`", "code": "NoAuth"}`)
		if _, _, err := c.Exists(t.Context(), "/a"); !errors.Is(err, proto.ErrNoAuth) {
			t.Errorf("%v", err)
		}
		b.do("POST", "/v1/sessions/"+sid(c)+"/drop", "")
		b.do("POST", "/v1/wait", fmt.Sprintf(`{"connected": %q, "timeout": "60s"}`, sid(c)))
		b.do("POST", "/v1/sessions/"+sid(c)+"/expire", "")
	}
	b.do("POST", "/v1/advance", `{"duration": "1h"}`)
	id := b.do("POST", "/v1/snapshots", "")["id"].(string)
	b.do("PUT", "/v1/node", `{"path": "/a", "data": "1"}`)
	b.do("POST", "/v1/leader", "")
	b.do("POST", "/v1/snapshots/"+id+"/reset", "")
	b.want("GET", "/v1/exists?path=/a", "", "exists", false)
}

// Two test servers can't share a port, and the second one should report that.
func TestStartFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for what, cfg := range map[string]control.Config{
		"the clients' port": {Options: []zktest.Option{zktest.WithAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))}},
		"the control port":  {ControlPort: port},
		"the configuration": {Options: []zktest.Option{zktest.WithConfig(func(c *server.Config) { c.TickTime = 1 })}},
	} {
		ts, err := control.Start(cfg)
		if err == nil {
			ts.Close()
			t.Errorf("%s: no error", what)
			continue
		}
		if what != "the configuration" && !strings.Contains(err.Error(), "in use") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A fixed port, and data on disk.
func TestPortAndDisk(t *testing.T) {
	t.Parallel()
	for attempt := 0; ; attempt++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		ts, err := control.Start(control.Config{Options: []zktest.Option{zktest.WithAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))), zktest.OnDisk()}})
		if err != nil && attempt < 20 { // another process uses the port now
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("127.0.0.1:%d", port); ts.Ready().ConnectString != want {
			t.Errorf("it listens at %s, not %s", ts.Ready().ConnectString, want)
		}
		if err := ts.Close(); err != nil {
			t.Error(err)
		}
		return
	}
}

// We call the endpoints concurrently. None of them should block forever, and the race
// detector checks them.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	b := start(t, 3)
	c := b.client()
	var wg sync.WaitGroup
	for _, one := range []struct{ method, path, body string }{
		{"GET", "/v1/servers", ""},
		{"GET", "/v1/sessions", ""},
		{"GET", "/v1/dump?server=2", ""},
		{"GET", "/v1/watches", ""},
		{"GET", "/v1/faults", ""},
		{"PUT", "/v1/node", `{"path": "/a", "data": "1"}`},
		{"POST", "/v1/faults?server=1", `{"action": "fail", "op": "getACL", "code": "NoAuth"}`},
		{"POST", "/v1/partition", `{"groups": [[1]]}`},
		{"POST", "/v1/servers/1/pause", ""},
		{"POST", "/v1/servers/1/resume", ""},
		{"POST", "/v1/heal", ""},
		{"POST", "/v1/wait", `{"connected": "` + sid(c) + `"}`},
		{"POST", "/v1/recordings", ""},
	} {
		wg.Go(func() {
			for range 5 {
				status, m := b.ask(one.method, one.path, one.body)
				waits := one.method == "PUT" || one.path == "/v1/wait" // because the ensemble is partitioned all the time
				if status != http.StatusOK && !waits {
					t.Errorf("%s %s %s: %d %v", one.method, one.path, one.body, status, m)
				}
			}
		})
	}
	wg.Wait()
	b.do("POST", "/v1/heal", "")
	b.do("POST", "/v1/servers/1/resume", "")
	b.do("POST", "/v1/wait", `{"serving": true, "timeout": "60s"}`)
}
