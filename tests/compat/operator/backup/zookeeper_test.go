package backup

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// need skips tests with the real ZooKeeper unless the environment asks for it.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("ZKGO_LIVE") != "1" || os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("runs the real ZooKeeper; set ZKGO_REQUIRE=1 and ZKGO_LIVE=1")
	}
	oracle.Need(t)
}

// zookeeper starts a ZooKeeper with its AdminServer.
func zookeeper(t *testing.T) (s *oracle.Server, commands string) {
	t.Helper()
	ports := must.Get(oracle.FreePorts(1))(t)
	s = oracle.Start(t, oracle.Options{Config: []string{
		"extendedTypesEnabled=true", "admin.enableServer=true", "admin.rateLimiterIntervalInMS=100", "admin.serverAddress=127.0.0.1", fmt.Sprint("admin.serverPort=", ports[0]),
		"maxSessionTimeout=600000",
	}})
	return s, fmt.Sprintf("http://127.0.0.1:%d/commands", ports[0])
}

// ours starts a standalone zkgo.
func ours(t *testing.T, dir string) (addr, commands string) {
	t.Helper()
	ports := must.Get(oracle.FreePorts(1))(t)
	p := must.Get(process.Run(process.Binary(t), "server", "--data-dir", dir, "--client-port", "0", "--set", "clientPortAddress=127.0.0.1",
		"--set", "extendedTypesEnabled=true", "--set", fmt.Sprint("admin.serverPort=", ports[0]), "--set", "admin.serverAddress=127.0.0.1",
		"--set", "DigestAuthenticationProvider.superDigest=root:qScoE+LkbrbWBh/au3OD5Aq2Yx0=", "--set", "maxSessionTimeout=600000", "--set", "admin.rateLimiterIntervalInMS=100"))(t)
	t.Cleanup(p.Kill)
	return p.Addr, fmt.Sprintf("http://127.0.0.1:%d/commands", ports[0])
}

// ask sends a request to the AdminServer.
func ask(t *testing.T, method, url string, body []byte) (int, http.Header, []byte) {
	t.Helper()
	return exchange(t, url, method, "digest root:pw", "application/octet-stream", body)
}

// fill creates znodes of every kind.
func fill(t *testing.T, c *client.Client) {
	t.Helper()
	create := func(path string, data []byte, opts ...client.CreateOption) {
		t.Helper()
		if _, err := c.Create(ctx(t), path, data, opts...); err != nil {
			t.Fatal(path, err)
		}
	}
	acl := client.ACL{Perms: proto.PermRead, ID: client.ID{Scheme: "digest", ID: "bob:abcdefghijklmnopqrstuvwxyz0="}}
	create("/k", []byte("root of them"))
	create("/k/null", nil)
	create("/k/empty", []byte{})
	create("/k/big", []byte(strings.Repeat("0123456789", 50_000)))
	create("/k/größe", []byte("\x00\xff"))
	create("/k/seq-", nil, client.Sequential)
	create("/k/container", nil, client.Container)
	create("/k/container/child", nil)
	create("/k/ttl", nil, client.WithTTL(time.Hour))
	create("/k/acl", nil, client.WithACL(acl, client.ACL{Perms: proto.PermRead | proto.PermAdmin, ID: client.ID{Scheme: "world", ID: "anyone"}}))
	create("/k/gone", nil)
	must.Do(t, c.Delete(ctx(t), "/k/gone", 0))
	for range 3 {
		must.Get(c.Set(ctx(t), "/k", []byte("again"), client.AnyVersion))(t)
	}
	create("/zookeeper/quota/k", nil)
	create("/zookeeper/quota/k/zookeeper_limits", []byte("count=1000,bytes=-1"))
	create("/zookeeper/quota/k/zookeeper_stats", []byte("count=0,bytes=0"))
}

// picture returns everything that a client sees, by path.
func picture(t *testing.T, addr string) map[string]string {
	t.Helper()
	c := connect(t, addr)
	defer c.Close()
	all := make(map[string]string)
	var walk func(path string)
	walk = func(path string) {
		data, stat, err := c.Get(ctx(t), path)
		if err != nil {
			t.Fatal(path, err)
		}
		acl, _, err := c.GetACL(ctx(t), path)
		if err != nil {
			t.Fatal(path, err)
		}
		names, _, err := c.Children(ctx(t), path)
		if err != nil {
			t.Fatal(path, err)
		}
		all[path] = fmt.Sprintf("%d bytes, null %v, %+v %v %.60q", len(data), data == nil, stat, acl, data)
		for _, name := range names {
			if child := strings.TrimRight(path, "/") + "/" + name; child != "/zookeeper/config" {
				walk(child)
			}
		}
	}
	walk("/")
	return all
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for path := range want {
		if got[path] != want[path] {
			t.Errorf("%s: %s\n got %s\nwant %s", what, path, got[path], want[path])
		}
	}
	for path := range got {
		if _, is := want[path]; !is {
			t.Errorf("%s: %s is too much", what, path)
		}
	}
}

// The real ZooKeeper should accept snapshots of our AdminServer: over HTTP into a running
// server, and as a file in an empty data directory.
func TestZooKeeperRestoresOurs(t *testing.T) {
	need(t)
	addr, commands := ours(t, t.TempDir())
	c := connect(t, addr, client.WithSessionTimeout(5*time.Minute))
	fill(t, c)
	must.Get(c.Create(ctx(t), "/k/ephemeral", []byte("mine"), client.Ephemeral))(t)
	code, head, stream := ask(t, http.MethodGet, commands+"/snapshot", nil)
	if code != http.StatusOK || head.Get("last_zxid") == "" {
		t.Fatalf("%d %v", code, head)
	}
	file := filepath.Join(t.TempDir(), "ours.zkb")
	works(t, "backup", "--auth", "digest:root:pw", "--from", commands, file)
	want := picture(t, addr)
	theirs, theirCommands := zookeeper(t)
	code, _, answer := ask(t, http.MethodPost, theirCommands+"/restore", stream)
	if code != http.StatusOK || !strings.Contains(string(answer), `"error" : null`) {
		t.Fatalf("%d %s\n%s", code, answer, theirs.Log())
	}
	got := picture(t, theirs.Addr())
	same(t, "over HTTP", got, want)

	theirs.Stop()
	version := filepath.Join(theirs.Dir, "data", "version-2")
	must.Do(t, os.RemoveAll(version))
	works(t, "backup", "extract", file, version)
	if err := theirs.Run(); err != nil {
		t.Fatalf("%v\n%s", err, theirs.Log())
	}
	got = picture(t, theirs.Addr())
	same(t, "as a file", got, want)
}

// We should be able to turn a snapshot of the real ZooKeeper into a new zkgo cluster, and
// inspect its files.
func TestWeRestoreZooKeepers(t *testing.T) {
	need(t)
	theirs, commands := zookeeper(t)
	c := connect(t, theirs.Addr())
	fill(t, c)
	file := filepath.Join(t.TempDir(), "theirs.zkb")
	if out := works(t, "backup", "--from", commands, file); !strings.Contains(out, "compared with its digest") {
		t.Errorf("%s", out)
	}
	want := picture(t, theirs.Addr())
	dir := filepath.Join(t.TempDir(), "restored")
	works(t, "restore", file, "--data-dir", dir)
	addr, _ := ours(t, dir)
	same(t, "restored", picture(t, addr), want)

	data := filepath.Join(theirs.Dir, "data")
	log := works(t, "inspect", "log", data, "--path", "/k/gone")
	for _, say := range []string{`"/k/gone"`, "delete", fmt.Sprintf("session 0x%x", uint64(c.Session().ID))} {
		if !strings.Contains(log, say) {
			t.Errorf("the log does not show %s:\n%s", say, log)
		}
	}
	works(t, "inspect", "verify", data)
	// Each server has its own list of servers.
	works(t, "inspect", "diff", data, file, "--path", "/k", "--stats")
	if out := works(t, "inspect", "snapshot", file); !strings.Contains(out, `"/k"`) {
		t.Errorf("%s", out)
	}
}

// advice matches what ours adds to ZooKeeper's messages: how to authenticate.
var advice = regexp.MustCompile(`(Auth info is missing for the command|Not authenticated)[^"]*`)

// Both AdminServers should give the same replies to clients that may not have the state.
func TestSameAnswers(t *testing.T) {
	need(t)
	_, theirs := zookeeper(t)
	_, mine := ours(t, t.TempDir())
	for _, auth := range []string{"", "digest", "bogus x", "digest root:pw"} {
		for _, command := range []string{"snapshot", "snap", "snapshot?streaming=false"} {
			var answers []string
			for _, url := range []string{theirs, mine} {
				var answer string
				wait.Eventually(t, "its turn", func() bool { // there is a rate limit
					code, header, b := exchange(t, url+"/"+command, http.MethodGet, auth, "", nil)
					if header.Get("Content-Type") == "application/octet-stream" {
						b = b[:4]
					}
					text := advice.ReplaceAllString(string(b), "$1")
					answer = fmt.Sprint(code, header.Get("Content-Type"), text, len(header["Last_zxid"]) > 0)
					return code != http.StatusTooManyRequests
				})
				answers = append(answers, answer)
			}
			if answers[0] != answers[1] {
				t.Errorf("%s as %q: theirs %s\nours %s", command, auth, answers[0], answers[1])
			}
		}
	}
}
