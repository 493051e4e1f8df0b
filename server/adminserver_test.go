package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
)

// fetch gets a URL on a new connection, as the super user.
func fetch(t *testing.T, url string) (code int, body string) {
	t.Helper()
	code, _, b := askState(t, http.MethodGet, url, superAuth, nil)
	return code, string(b)
}

// logBuffer collects log output.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestAdminServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0"} })
	<-s.Ready()
	w := connect(t, s)
	w.create("/eph", []byte("x"), proto.ModeEphemeral)
	w.get("/eph", true)
	base := "http://" + s.AdminAddr()
	if code, body := fetch(t, base+"/readyz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	command := func(name string) map[string]any {
		code, body := fetch(t, base+"/commands/"+name)
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d %v %s", name, code, err, body)
		}
		return m
	}
	sid := strconv.FormatInt(w.resp.SessionID, 10)
	for _, name := range []string{"dump", "wchc", "wchp", "cons", "env", "conf", "srvr", "stat", "mntr", "hash", "lsnp", "sysp", "orst", "obsr"} {
		if m := command(name); m["error"] != nil {
			t.Errorf("%s: %v", name, m["error"])
		}
	}
	if _, body := fetch(t, base+"/commands/dump"); !strings.Contains(body, `"`+sid+`" : [ "/eph" ]`) {
		t.Errorf("dump: %s", body)
	}
	if got := command("watches")["session_id_to_watched_paths"].(map[string]any)[sid]; got == nil {
		t.Error("the watch is missing")
	}
	if m := command("mntr"); m["ephemerals_count"] != 1.0 || m["num_alive_connections"] != 1.0 || m["server_state"] != "standalone" {
		t.Errorf("mntr: %v", m)
	}
	command("stmk?traceMask=77")
	if got := dial(t, s).word("gtmk"); got != "77" {
		t.Errorf("trace mask %s", got)
	}
}

// TestAdminPortInUse: a busy default port doesn't keep the server from starting.
func TestAdminPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log logBuffer
	s := startServer(t, func(c *Config) {
		c.Admin = &Admin{Addr: l.Addr().String(), Optional: true}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	connect(t, s).must(proto.OpPing, nil)
	if n := strings.Count(log.String(), l.Addr().String()); n != 1 || s.AdminAddr() != "" {
		t.Errorf("admin at %q, log:\n%s", s.AdminAddr(), log.String())
	}
	for _, a := range []*Admin{{Addr: l.Addr().String()}, {Addr: "256.0.0.1:x", Optional: true}} {
		if s, err := Start(t.Context(), Config{Memory: true, Admin: a}); err == nil || !strings.Contains(err.Error(), "admin.serverPort") {
			t.Errorf("started with %+v: %v", a, err)
			if s != nil {
				_ = s.Close()
			}
		}
	}
}

// TestAdminOfAMemberIsOptional: a member of an ensemble serves without the AdminServer
// if it can't listen on the host, as in ZooKeeper. A standalone server doesn't start.
func TestAdminOfAMemberIsOptional(t *testing.T) {
	t.Parallel()
	var log logBuffer
	foreign := Admin{Addr: "192.0.2.1:0", Optional: true} // an address for documentation
	s := startServer(t, alone, func(c *Config) {
		c.Admin, c.Logger = &foreign, slog.New(slog.NewTextHandler(&log, nil))
	})
	if n := strings.Count(log.String(), "set admin.serverAddress"); n != 1 || s.AdminAddr() != "" {
		t.Errorf("admin at %q, log:\n%s", s.AdminAddr(), log.String())
	}
	if s, err := Start(t.Context(), Config{Memory: true, Admin: &foreign}); err == nil || !strings.Contains(err.Error(), "admin.serverPort") {
		t.Errorf("standalone: %v", err)
		if s != nil {
			_ = s.Close()
		}
	}
}

// TestRefusedCommandsAreLogged: every refusal of a command is logged at WARN
// with the client and the command, and a client that repeats it can't flood the log.
func TestRefusedCommandsAreLogged(t *testing.T) {
	t.Parallel()
	const own = "digest admin:pw"
	for _, tt := range []struct {
		name, method, command, auth, says string
		code                              int
		change                            func(*Admin)
	}{
		{"no auth", http.MethodPost, "restore", "", "it has no Authorization header", http.StatusUnauthorized, nil},
		{"wrong auth", http.MethodGet, "snapshot", "nonsense x", "authentication failed", http.StatusUnauthorized, nil},
		{"no permission", http.MethodGet, "snapshot", "digest some:body", "the caller is not an administrator", http.StatusForbidden, nil},
		{"too early", http.MethodGet, "snapshot", own, "rate limit exceeded", http.StatusTooManyRequests, func(a *Admin) { a.SnapshotInterval = time.Hour }},
		{"no snapshots", http.MethodGet, "snapshot", own, "it is disabled", http.StatusServiceUnavailable, func(a *Admin) { a.NoSnapshot = true }},
		{"no restores", http.MethodPost, "restore", own, "it is disabled", http.StatusServiceUnavailable, func(a *Admin) { a.NoRestore = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log logBuffer
			s := startServer(t, func(c *Config) {
				c.Admin, c.Logger = &Admin{Addr: "127.0.0.1:0"}, slog.New(slog.NewTextHandler(&log, nil))
				if tt.change != nil {
					tt.change(c.Admin)
				}
			})
			<-s.Ready()
			id, err := schemes.DigestID("SHA1", "admin:pw")
			if err != nil {
				t.Fatal(err)
			}
			connect(t, s).must(proto.OpSetACL, &proto.SetACLRequest{Path: "/", Version: -1, ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: id}}}})
			for range 3 { // the first one isn't too early
				eventually(t, "the command is refused", func() bool {
					code, _, _ := askState(t, tt.method, "http://"+s.AdminAddr()+"/commands/"+tt.command, tt.auth, nil)
					return code == tt.code
				})
			}
			var found []string
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, tt.says) {
					found = append(found, line)
				}
			}
			if len(found) != 1 || !strings.Contains(found[0], "level=WARN") || !strings.Contains(found[0], "client=127.0.0.1:") ||
				!strings.Contains(found[0], "command="+tt.command) && !strings.Contains(found[0], "scheme=nonsense") {
				t.Errorf("got the log %q", found)
			}
		})
	}
}

func TestAdminFromZooCfg(t *testing.T) {
	t.Parallel()
	const twoServers = "initLimit=10\nsyncLimit=5\nserver.1=a:2888:3888\nserver.2=b:2888:3888"
	for text, want := range map[string]string{
		"":                         "127.0.0.1:8080 /commands 30s true",
		"admin.enableServer=false": "",
		"admin.serverPort=8081\nadmin.serverAddress=127.0.0.1\nadmin.commandURL=/zk\nadmin.idleTimeout=5000": "127.0.0.1:8081 /zk 5s false",
		"admin.serverPort=8080":                             "127.0.0.1:8080 /commands 30s false",
		"admin.serverPort=8080\n" + twoServers:              "127.0.0.1:8080 /commands 30s true",
		"admin.forceHttps=true":                             "error",
		"admin.forceHttps=true\nadmin.enableServer=false":   "",
		"admin.needClientAuth=true\nadmin.serverPort=8081":  "error",
		"admin.portUnification=true\nadmin.serverPort=8081": "error",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		z, err := zoocfg.ParseText("zoo.cfg", "clientPort=0\ndataDir="+dir+"\n"+text+"\n")
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		c, err := fromZooCfg(z, allFormats())
		got := ""
		if err != nil {
			got = "error"
		} else if a := c.Admin; a != nil {
			got = strings.Join([]string{a.Addr, a.CommandURL, a.IdleTimeout.String(), strconv.FormatBool(a.Optional)}, " ")
		}
		if got != want {
			t.Errorf("%q: %q, want %q (%v)", text, got, want, err)
		}
	}
}

// TestAdminConnectionsAreBounded: clients that send no complete header can't occupy more
// than httpport.MaxConns connections, and others are still served.
func TestAdminConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	s := startServer(t, alone, func(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0"} })
	var closed atomic.Int32
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	for range httpport.MaxConns + 50 {
		conn, err := net.Dial("tcp", s.AdminAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nX: ")); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				closed.Add(1)
			}
		})
	}
	eventually(t, "the oldest connections are closed", func() bool { return closed.Load() >= 50 })
	resp, err := http.Get("http://" + s.AdminAddr() + "/commands/ruok")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.AdminAddr()+"/commands/ruok", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X", strings.Repeat("x", 64<<10))
	if resp, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: %s", resp.Status)
	}
}
