package backup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
	"github.com/zkgo/zkgo/tree"
)

// commands returns the URL of a member's AdminServer commands.
func (m *member) commands() string { return "http://" + m.admin + "/commands" }

// running lays out a cluster of n and starts it; it returns when every server accepts
// restores.
func running(t *testing.T, n int) *cluster {
	t.Helper()
	c := lay(t, n)
	for _, m := range c.members {
		m.start(t)
	}
	for _, m := range c.members {
		m.awaitRestores(t)
	}
	return c
}

// awaitRestores waits until the server stops replying that the other servers don't support
// restores yet, and replies that the body isn't a snapshot.
func (m *member) awaitRestores(t *testing.T) {
	t.Helper()
	wait.Eventually(t, "restores are taken", func() bool {
		code, _, err := post(t, m.commands(), nil)
		return err == nil && code == http.StatusInternalServerError
	})
}

// post sends a state to a server that may be down.
func post(t *testing.T, commands string, state []byte) (int, string, error) {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(ctx(t), http.MethodPost, commands+"/restore", bytes.NewReader(state)))(t)
	req.Header.Set("Authorization", "digest root:pw")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// restore sends a state, and retries until the rate limit allows it.
func restore(t *testing.T, commands string, state []byte) {
	t.Helper()
	wait.Eventually(t, "it is restored", func() bool {
		code, answer, err := post(t, commands, state)
		if err != nil || code != http.StatusOK && code != http.StatusTooManyRequests {
			t.Fatalf("%d %s %v", code, answer, err)
		}
		return code == http.StatusOK
	})
}

// A snapshot from the real ZooKeeper replaces the data of a running zkgo, standalone and in
// an ensemble, through any server.
func TestWeRestoreZooKeepersWhileRunning(t *testing.T) {
	need(t)
	theirs, commands := zookeeper(t)
	c := connect(t, theirs.Addr(), client.WithSessionTimeout(5*time.Minute))
	fill(t, c)
	if err := c.Close(); err != nil { // a restore drops ephemeral znodes, so we delete them first
		t.Fatal(err)
	}
	code, _, state := ask(t, http.MethodGet, commands+"/snapshot", nil)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, state)
	}
	want := picture(t, theirs.Addr())
	addr, mine := ours(t, t.TempDir())
	old := connect(t, addr)
	must.Get(old.Create(ctx(t), "/old", nil))(t)
	before := old.Session().ID
	restore(t, mine, state)
	same(t, "alone", picture(t, addr), want)
	wait.Eventually(t, "its session has expired, and it has begun a new one", func() bool { return old.Session().ID != before })

	e := running(t, 3)
	for _, m := range e.members {
		w := connect(t, m.proc.Addr)
		must.Get(w.Create(ctx(t), "/old", nil))(t)
		restore(t, m.commands(), state)
		for _, other := range e.members {
			wait.Eventually(t, "it has it", func() bool { return has(t, other.proc.Addr, "/k") && !has(t, other.proc.Addr, "/old") })
			same(t, fmt.Sprintf("through %d, at %d", m.id, other.id), picture(t, other.proc.Addr), want)
		}
	}
}

// has reports whether a server has a znode.
func has(t *testing.T, addr, path string) bool {
	t.Helper()
	c := connect(t, addr)
	defer c.Close()
	_, is, err := c.Exists(ctx(t), path)
	return err == nil && is
}

// Both AdminServers should give the same status and fields for unauthorized requests, for
// invalid snapshots, and for requests that come too early. Ours should add the reason.
func TestSameAnswersToRestores(t *testing.T) {
	need(t)
	plain := func(more ...string) string { // a ZooKeeper with these settings
		ports := must.Get(oracle.FreePorts(1))(t)
		oracle.Start(t, oracle.Options{Config: append(more, "admin.enableServer=true", "admin.serverAddress=127.0.0.1", fmt.Sprint("admin.serverPort=", ports[0]))})
		return fmt.Sprintf("http://127.0.0.1:%d/commands", ports[0])
	}
	alone := func(more ...string) string { // a zkgo with these settings
		ports := must.Get(oracle.FreePorts(1))(t)
		args := []string{"server", "--data-dir", t.TempDir(), "--client-port", "0", "--set", "clientPortAddress=127.0.0.1",
			"--set", fmt.Sprint("admin.serverPort=", ports[0]), "--set", "admin.serverAddress=127.0.0.1",
			"--set", "DigestAuthenticationProvider.superDigest=root:qScoE+LkbrbWBh/au3OD5Aq2Yx0="}
		for _, set := range more {
			args = append(args, "--set", set)
		}
		p := must.Get(process.Run(process.Binary(t), args...))(t)
		t.Cleanup(p.Kill)
		return fmt.Sprintf("http://127.0.0.1:%d/commands", ports[0])
	}
	_, theirs := zookeeper(t)
	mine := alone("admin.rateLimiterIntervalInMS=100")
	code, _, good := ask(t, http.MethodGet, theirs+"/snapshot", nil)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, good)
	}
	flipped := bytes.Clone(good)
	flipped[60] ^= 1
	const root = "digest root:pw"
	for _, v := range []struct {
		what, method, command, auth string
		body                        []byte
	}{
		{"nobody", "POST", "restore", "", good},
		{"nobody, to look", "GET", "restore", "", nil},
		{"nobody, by the short name", "POST", "rest", "", good},
		{"no data", "POST", "restore", "digest", good},
		{"no such scheme", "POST", "restore", "bogus x", good},
		{"another method", "PUT", "restore", root, good},
		{"nothing", "POST", "restore", root, nil},
		{"nonsense", "POST", "restore", root, []byte("hello")},
		{"cut off", "POST", "restore", root, good[:100]},
		{"a flipped bit", "POST", "restore", root, flipped},
		{"a snapshot", "POST", "restore", root, good},
		{"by the short name", "POST", "rest", root, good},
	} {
		alike(t, v.what, theirs, mine, v.method, v.command, v.auth, v.body)
	}
	const off = "admin.restore.enabled=false"
	theirClosed, ourClosed := plain(off), alone(off)
	alike(t, "switched off", theirClosed, ourClosed, "POST", "restore", root, good)
	alike(t, "switched off, nobody", theirClosed, ourClosed, "POST", "restore", "", good)
	// The default interval is minutes long, even after a refused request.
	for _, commands := range []string{plain(), alone()} {
		for i, want := range []int{http.StatusInternalServerError, http.StatusTooManyRequests} {
			if code, says, err := post(t, commands, nil); code != want {
				t.Errorf("restore %d: %d %s %v", i, code, says, err)
			}
		}
	}
}

// answer is an AdminServer's reply: the status, the fields, and the values of error and
// command.
type answer struct {
	code   int
	fields []string
	values map[string]any
}

// exchange sends one request and returns the reply.
func exchange(t *testing.T, url, method, auth, contentType string, body []byte) (code int, header http.Header, reply []byte) {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(ctx(t), method, url, bytes.NewReader(body)))(t)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := http.DefaultClient.Do(req)
	must.Do(t, err)
	defer resp.Body.Close()
	b := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header, b
}

// asked sends a request, and repeats it while it comes too early.
func asked(t *testing.T, url, method, auth string, body []byte) (a answer) {
	t.Helper()
	wait.Eventually(t, "its turn", func() bool {
		code, _, b := exchange(t, url, method, auth, "application/octet-stream", body)
		a = answer{code: code, values: map[string]any{}}
		if len(b) > 0 {
			if err := json.Unmarshal(b, &a.values); err != nil {
				t.Fatalf("%s %s: %d %s", method, url, code, b)
			}
		}
		a.fields = slices.Sorted(maps.Keys(a.values))
		return a.code != http.StatusTooManyRequests
	})
	return a
}

// alike compares two replies. Where ZooKeeper fails without a message, ours has one, and ours
// may say more.
func alike(t *testing.T, what, theirs, mine, method, command, auth string, body []byte) {
	t.Helper()
	want, got := asked(t, theirs+"/"+command, method, auth, body), asked(t, mine+"/"+command, method, auth, body)
	if got.code != want.code || got.values["command"] != want.values["command"] && want.values["command"] != nil {
		t.Errorf("%s: theirs %d %v, ours %d %v", what, want.code, want.values, got.code, got.values)
	}
	if len(want.fields) > 0 && !slices.Equal(got.fields, want.fields) {
		t.Errorf("%s: theirs %v, ours %v", what, want.values, got.values)
	}
	switch said := want.values["error"]; {
	case said != nil && !strings.HasPrefix(fmt.Sprint(got.values["error"]), fmt.Sprint(said)):
		t.Errorf("%s: theirs says %v, ours %v", what, said, got.values["error"])
	case got.code != http.StatusOK && got.values["error"] == nil:
		t.Errorf("%s: ours does not say why: %v", what, got.values)
	case got.code == http.StatusOK && got.values["error"] != nil:
		t.Errorf("%s: %v", what, got.values)
	}
	if _, is := want.values["last_zxid"].(float64); is {
		if _, is := got.values["last_zxid"].(float64); !is {
			t.Errorf("%s: ours is %v", what, got.values)
		}
	}
}

// stateOf returns a snapshot file of about 6 MB that contains a mark.
func stateOf(t *testing.T, mark string) []byte {
	t.Helper()
	tr := tree.New()
	for i := range 101 {
		path, data := "/state", []byte(mark)
		if i > 0 {
			path, data = fmt.Sprintf("/state/%d", i), bytes.Repeat([]byte(mark), 60_000/len(mark))
		}
		req := &proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}
		if res := tr.Apply(&tree.Txn{Zxid: int64(i + 1)}, proto.OpCreate, req); res.Code != proto.Ok {
			t.Fatal(res.Code)
		}
	}
	tr.Lock()
	snap := tr.Snapshot()
	tr.Unlock()
	defer snap.Release()
	var b bytes.Buffer
	must.Do(t, zkfiles.WriteSnapshot(&b, snap, session.NewTable(), zkfiles.None))
	return b.Bytes()
}

// Servers are killed while states are restored. Afterwards either all should have the old
// state or all the new one, and the reply should match.
func TestRestoresAndKills(t *testing.T) {
	process.Needed(t)
	c := running(t, 3)
	mark := "state-0"
	restore(t, c.members[0].commands(), stateOf(t, mark))
	rnd := rand.New(rand.NewPCG(1, 2))
	done, nothing := 0, 0
	for round := range 16 {
		next := fmt.Sprint("state-", round+1)
		through, victims := c.members[rnd.IntN(3)], []*member{c.members[rnd.IntN(3)]}
		if round%4 == 3 {
			victims = c.members // a power failure of all servers
		}
		code, says := c.restoreUnderFire(t, through, victims, stateOf(t, next), time.Duration(rnd.IntN(120))*time.Millisecond)
		is := c.agreed(t, mark, next)
		t.Logf("round %d: through %d, %d servers killed: %d %q, they have %s", round, through.id, len(victims), code, says, is)
		switch {
		case code == http.StatusOK:
			done++
			if is != next {
				t.Fatalf("it was done, and they have %s", is)
			}
		case strings.Contains(says, "nothing was changed"):
			nothing++
			if is != mark {
				t.Fatalf("nothing was changed, and they have %s", is)
			}
		}
		mark = is
	}
	t.Logf("%d times done, %d times nothing changed", done, nothing)
	for _, m := range c.members {
		m.awaitRestores(t)
	}
	restore(t, c.members[1].commands(), stateOf(t, "last"))
	if is := c.agreed(t, "last"); is != "last" {
		t.Errorf("they have %s", is)
	}
}

// restoreUnderFire sends a state, kills servers after a delay, and restarts them. It returns
// the reply, if there was one.
func (c *cluster) restoreUnderFire(t *testing.T, through *member, victims []*member, state []byte, after time.Duration) (code int, says string) {
	t.Helper()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		code, says, _ = post(t, through.commands(), state) // the server may be killed
	}()
	<-time.After(after)
	for _, m := range victims {
		m.proc.Kill()
	}
	for _, m := range victims {
		m.start(t)
	}
	<-answered
	return code, says
}

// agreed waits until all servers have a new write and compares their data. It returns the
// mark.
func (c *cluster) agreed(t *testing.T, marks ...string) string {
	t.Helper()
	w := connect(t, c.addrs())
	now := fmt.Sprint("/now-", time.Now().UnixNano())
	wait.Eventually(t, "a write", func() bool {
		_, err := w.Create(ctx(t), now, nil)
		return err == nil || has(t, c.addrs(), now)
	})
	var first map[string]string
	var mark string
	for _, m := range c.members {
		wait.Eventually(t, "it has caught up", func() bool { return has(t, m.proc.Addr, now) })
		r := connect(t, m.proc.Addr)
		data, stat, err := r.Get(ctx(t), "/state")
		if err != nil || !slices.Contains(marks, string(data)) || stat.NumChildren != 100 {
			t.Fatalf("server %d has %q %+v: %v", m.id, data, stat, err)
		}
		mark = string(data)
		p := picture(t, m.proc.Addr)
		for path, is := range p {
			if strings.HasPrefix(path, "/state/") && !strings.Contains(is, mark) {
				t.Fatalf("server %d: %s is of another state than %s: %s", m.id, path, mark, is)
			}
		}
		if first == nil {
			first = p
		}
		same(t, fmt.Sprintf("server %d and server %d", m.id, c.members[0].id), p, first)
		_ = r.Close()
	}
	return mark
}
