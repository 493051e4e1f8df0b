package recovery

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// timeout is the session timeout: no test waits for a session to expire.
const timeout = 30 * time.Second

// ensemble is a set of servers, each a process with its own loopback address, so that they
// need not agree on free ports.
type ensemble struct {
	t       *testing.T
	dir     string
	servers []*process.Server // by id − 1; nil if it doesn't run
}

func newEnsemble(t *testing.T, n int) *ensemble {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("it takes more than one loopback address, as Linux has them")
	}
	e := &ensemble{t: t, dir: t.TempDir(), servers: make([]*process.Server, n)}
	var lines strings.Builder
	net := fmt.Sprintf("127.%d.%d", 1+rand.IntN(250), rand.IntN(250))
	for id := 1; id <= n; id++ {
		fmt.Fprintf(&lines, "server.%d=%s.%d:2888:3888\n", id, net, id)
	}
	for id := 1; id <= n; id++ {
		cfg := "tickTime=500\ninitLimit=10\nsyncLimit=5\ndataDir=" + e.data(id) + "\nclientPort=2181\n" + lines.String()
		must.Do(t, os.WriteFile(e.config(id), []byte(cfg), 0o600))
		e.empty(id)
	}
	return e
}

func (e *ensemble) data(id int) string   { return filepath.Join(e.dir, fmt.Sprint("data", id)) }
func (e *ensemble) config(id int) string { return filepath.Join(e.dir, fmt.Sprintf("zoo%d.cfg", id)) }

// empty gives a server an empty disk.
func (e *ensemble) empty(id int) {
	e.t.Helper()
	must.Do(e.t, errors.Join(os.RemoveAll(e.data(id)), os.Mkdir(e.data(id), 0o750),
		os.WriteFile(filepath.Join(e.data(id), "myid"), []byte(fmt.Sprintln(id)), 0o600)))
}

func (e *ensemble) start(ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		e.servers[id-1] = process.Start(e.t, e.data(id), "--config", e.config(id))
	}
}

func (e *ensemble) kill(ids ...int) {
	for _, id := range ids {
		e.servers[id-1].Kill()
		e.servers[id-1] = nil
	}
}

// connect opens a session at a server, as soon as the server serves.
func (e *ensemble) connect(id int) *process.Client {
	e.t.Helper()
	return e.attach(id, &process.Client{})
}

// attach attaches to a client's session at a server.
func (e *ensemble) attach(id int, c *process.Client) *process.Client {
	e.t.Helper()
	var next *process.Client
	must.Do(e.t, wait.Success(wait.Patience, fmt.Sprintf("server %d takes the client", id), func() (err error) {
		next, err = process.Connect(e.servers[id-1].Addr, c.Session, c.Password, timeout)
		return err
	}))
	e.t.Cleanup(func() { next.Close() })
	return next
}

// zkgo runs a command and returns its output.
func (e *ensemble) zkgo(args ...string) (string, error) {
	out, err := exec.Command(process.Binary(e.t), args...).CombinedOutput()
	return string(out), err
}

func (e *ensemble) mustZkgo(args ...string) string {
	e.t.Helper()
	out, err := e.zkgo(args...)
	if err != nil {
		e.t.Fatalf("zkgo %v: %v\n%s", args, err, out)
	}
	return out
}
