package backup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// patience bounds every wait; the tests measure no times.
const patience = 90 * time.Second

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return c
}

// zkgo runs the command and returns its output and its error.
func zkgo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(ctx(t), process.Binary(t), args...)
	cmd.Env = append(os.Environ(), "ZKGO_AUTH=digest root:pw")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// works fails the test if the command fails.
func works(t *testing.T, args ...string) string {
	t.Helper()
	out, err := zkgo(t, args...)
	if err != nil {
		t.Fatalf("zkgo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refused fails the test unless the command fails with a message that contains all of say.
func refused(t *testing.T, args []string, say ...string) {
	t.Helper()
	out, err := zkgo(t, args...)
	if err == nil {
		t.Errorf("zkgo %s did not fail:\n%s", strings.Join(args, " "), out)
	}
	for _, s := range say {
		if !strings.Contains(out, s) {
			t.Errorf("zkgo %s does not say %q:\n%s", strings.Join(args, " "), s, out)
		}
	}
}

// member is one server of a cluster of processes.
type member struct {
	id       int
	dir, cfg string
	admin    string // host:port of the AdminServer
	proc     *process.Server
}

// cluster is a set of server processes.
type cluster struct {
	t       *testing.T
	members []*member
}

// lay creates the directories of n servers. If another process has bound a port in the meantime,
// the server ends and the test fails. That is unlikely, because FreePorts picks from a large range.
func lay(t *testing.T, n int) *cluster {
	t.Helper()
	ports := must.Get(oracle.FreePorts(3 * n))(t)
	c := &cluster{t: t}
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[3*i], ports[3*i+1])
	}
	base := t.TempDir()
	for i := range n {
		m := &member{id: i + 1, dir: filepath.Join(base, fmt.Sprint("data", i+1)), cfg: filepath.Join(base, fmt.Sprintf("zoo%d.cfg", i+1))}
		m.admin = fmt.Sprintf("127.0.0.1:%d", ports[3*i+2])
		m.empty(t)
		text := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPort=0\nclientPortAddress=127.0.0.1\nadmin.serverAddress=127.0.0.1\nadmin.serverPort=%d\nmaxClientCnxns=0\nDigestAuthenticationProvider.superDigest=root:qScoE+LkbrbWBh/au3OD5Aq2Yx0=\nadmin.rateLimiterIntervalInMS=20\n%s",
			m.dir, ports[3*i+2], list.String())
		must.Do(t, os.WriteFile(m.cfg, []byte(text), 0o600))
		c.members = append(c.members, m)
	}
	return c
}

// empty removes everything from the directory but the server's number.
func (m *member) empty(t *testing.T) {
	t.Helper()
	must.Do(t, os.RemoveAll(m.dir))
	must.Do(t, os.MkdirAll(m.dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(m.dir, "myid"), fmt.Appendln(nil, m.id), 0o600))
}

func (m *member) start(t *testing.T) {
	t.Helper()
	p := must.Get(process.Run(process.Binary(t), "server", m.cfg))(t)
	m.proc = p
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("server %d said:\n%s", m.id, p.Output())
		}
	})
}

// addrs returns the client addresses of all members.
func (c *cluster) addrs() string {
	var all []string
	for _, m := range c.members {
		all = append(all, m.proc.Addr)
	}
	return strings.Join(all, ",")
}

// connect returns a client of these servers and no others.
func connect(t *testing.T, addrs string, opts ...client.Option) *client.Client {
	t.Helper()
	opts = append([]client.Option{client.WithSessionTimeout(40 * time.Second), client.WithMaxReply(64 << 20)}, opts...)
	c := must.Get(client.Connect(ctx(t), addrs, opts...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
