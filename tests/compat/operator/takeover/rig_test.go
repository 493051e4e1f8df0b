package takeover

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/takeover"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

var (
	oldLib = flag.String("old", "", "`release=directory` with the jars of the ensemble to take over from")
	rounds = flag.Int("rounds", 1, "`number` of rounds of TestKilled")
	seed   = flag.Uint64("seed", 1, "`number` of the first round of TestKilled")
)

// patience bounds every wait; the tests measure no times.
const patience = 90 * time.Second

// release returns the old ensemble's release, "" for the default one.
func release() string {
	r, _, _ := strings.Cut(*oldLib, "=")
	return r
}

// rig is an old ensemble behind gates, and the zkgo servers that follow it.
type rig struct {
	t     *testing.T
	old   []*oracle.Server
	gates []*gate
	new   []*zkgo
	place network // nil: the loopback network of this machine
	fence string  // directory: a file named like a gate's port closes the gate
}

// network is where the servers of a rig run. Each has the address s.Addr() on this machine.
type network interface {
	// lines returns the lines about addresses in the zoo.cfg of n servers of a side.
	lines(side string, n int) []string
	// enter returns the function that process.LaunchIn calls on the thread that starts a server.
	enter(side string, id int) func() (end bool, err error)
	// door makes an address of this machine lead to the client port of a server.
	door(addr, side string, id int)
	// behind makes the gate lead to the client port of an old server, and returns the address
	// at which the zkgo servers see the gate.
	behind(g *gate, id int) (addr string)
}

// newRig starts the old ensemble and n zkgo servers with these flags. The zkgo servers run
// after launch.
func newRig(t *testing.T, n int, flags ...string) *rig {
	t.Helper()
	return newRigIn(t, nil, n, oracle.Options{}, flags...)
}

// newRigIn is newRig in a network, with more settings of the old ensemble. If in is nil, it is
// the loopback network of this machine.
func newRigIn(t *testing.T, in network, n int, more oracle.Options, flags ...string) *rig {
	t.Helper()
	need(t)
	_, lib, _ := strings.Cut(*oldLib, "=")
	r := &rig{t: t, place: in, fence: t.TempDir()}
	o := oracle.Options{
		Lib: lib, Config: append([]string{"tickTime=1000", "initLimit=10", "syncLimit=5", "extendedTypesEnabled=true", "maxSessionTimeout=600000"}, more.Config...),
		JVM: append([]string{"-Dzookeeper.digest.enabled=true"}, more.JVM...),
	}
	if *znodes > 200_000 {
		o.JVM = append(o.JVM, "-Xmx2g")
	}
	if in != nil {
		o.Config = append(o.Config, in.lines("old", 3)...)
		o.Place = func(s *oracle.Server) error {
			in.door(s.Addr(), "old", s.ID)
			s.In(in.enter("old", s.ID))
			return nil
		}
	}
	r.old = oracle.Ensemble(t, 3, o)
	for _, s := range r.old {
		r.gates = append(r.gates, newGate(t, s.Addr(), r.fence))
	}
	r.configure(n, flags...)
	return r
}

// need skips a test unless the environment asks for it.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("ZKGO_LIVE") != "1" || os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("runs the real ZooKeeper; set ZKGO_REQUIRE=1 and ZKGO_LIVE=1")
	}
	oracle.Need(t)
}

// configure configures n zkgo servers that follow the ensemble.
func (r *rig) configure(n int, flags ...string) {
	t, in := r.t, r.place
	t.Helper()
	lines := []string{"tickTime=1000", "syncLimit=5", "extendedTypesEnabled=true", "minSessionTimeout=9000", "maxSessionTimeout=600000"}
	if in != nil {
		lines = append(lines, in.lines("new", n)...)
	}
	var quorum, clients []string
	var text []byte
	for _, file := range must.Get(filepath.Glob(filepath.Join(r.old[0].Dir, "zoo.cfg*")))(t) {
		if !strings.HasSuffix(file, ".bak") { // with reconfigEnabled, the list moves to another file
			text = append(text, must.Get(os.ReadFile(file))(t)...)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^server\.\d+=([^:]+:\d+)`).FindAllSubmatch(text, -1) {
		quorum = append(quorum, string(m[1]))
	}
	for i, g := range r.gates {
		addr := g.addr
		if in != nil {
			addr = in.behind(g, r.old[i].ID)
		}
		clients = append(clients, addr)
	}
	args := append([]string{"mirror", "--from", strings.Join(quorum, ","), "--clients", strings.Join(clients, ",")}, flags...)
	dir := must.Get(os.MkdirTemp("", "zkgo"))(t) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, s := range must.Get(oracle.Configure(dir, n, lines...))(t) {
		z := &zkgo{t: t, addr: s.Addr(), config: filepath.Join(s.Dir, "zoo.cfg"), data: filepath.Join(s.Dir, "data"), dir: s.Dir, args: args}
		if in != nil {
			in.door(s.Addr(), "new", s.ID)
			z.enter = in.enter("new", s.ID)
		}
		r.new = append(r.new, z)
	}
	t.Cleanup(func() {
		for _, s := range r.new {
			if t.Failed() {
				cons, err := process.Word(s.addr, "cons", time.Second)
				t.Log(s.addr, cons, err)
			}
			s.kill()
			if t.Failed() {
				b, _ := os.ReadFile(s.log())
				t.Logf("%s:\n%s", s.config, b)
			}
		}
	})
}

// launch starts the zkgo servers and waits until they are in sync.
func (r *rig) launch() {
	r.t.Helper()
	for _, s := range r.new {
		s.launch()
	}
	r.inSync()
}

// inSync waits until all running zkgo servers are in sync.
func (r *rig) inSync() {
	r.t.Helper()
	must.Do(r.t, wait.Success(patience, "the mirror to be in sync", func() error {
		for _, s := range r.new {
			st, err := s.status()
			if st.Broken != "" {
				r.t.Fatalf("%s: %s", s.addr, st.Broken)
			}
			if err != nil || st.Phase != "following" || !st.InSync {
				return fmt.Errorf("%s: %+v %w", s.addr, st, err)
			}
		}
		return nil
	}))
}

// leader returns the zkgo server that leads.
func (r *rig) leader() (leader *zkgo) {
	r.t.Helper()
	wait.Eventually(r.t, "a leader of the zkgo servers", func() bool {
		for _, s := range r.new {
			if st, err := s.status(); err == nil && st.Leads {
				leader = s
			}
		}
		return leader != nil
	})
	return leader
}

// oldLeader returns the old ensemble's leader.
func (r *rig) oldLeader() (leader *oracle.Server) {
	r.t.Helper()
	wait.Eventually(r.t, "a leader of the old ensemble", func() bool {
		leader = nil
		for _, s := range r.old {
			if st, err := process.Ask(s.Addr(), time.Second); err == nil && st.Mode == "leader" {
				leader = s
			}
		}
		return leader != nil
	})
	return leader
}

// cutover takes over, with the gates as the fence.
func (r *rig) cutover(args ...string) error {
	leader := r.leader()
	out, err := leader.zkgo(append([]string{"cutover", "--fence-command", "touch " + r.fence + "/{port}"}, args...)...)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	r.t.Log(out)
	return nil
}

// addrs returns the addresses that clients know: the gates, and the zkgo servers.
func (r *rig) addrs() (addrs []string) {
	for _, g := range r.gates {
		addrs = append(addrs, g.addr)
	}
	for _, s := range r.new {
		addrs = append(addrs, s.addr)
	}
	return addrs
}

// zkgo is a zkgo process.
type zkgo struct {
	t                       *testing.T
	addr, config, data, dir string
	args                    []string
	enter                   func() (end bool, err error)
	proc                    *process.Proc
}

func (s *zkgo) log() string { return filepath.Join(s.dir, "log") }

func (s *zkgo) launch() {
	s.t.Helper()
	cmd := exec.Command(process.Binary(s.t), append(append([]string(nil), s.args...), s.config)...)
	s.proc = must.Get(process.LaunchIn(s.enter, cmd, s.log()))(s.t)
}

func (s *zkgo) kill() {
	s.proc.Kill()
	s.proc = nil
}

// zkgo runs zkgo mirror with args and the server's configuration.
func (s *zkgo) zkgo(args ...string) (string, error) {
	cmd := exec.Command(process.Binary(s.t), append(append([]string{"mirror"}, args...), s.config)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *zkgo) status() (st takeover.Status, err error) {
	if s.proc == nil {
		return st, os.ErrProcessDone
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second) // it may be stopped
	defer cancel()
	return takeover.NewClient(s.data).Status(ctx)
}

// gate is a proxy before a client port. While it is closed, it refuses connections and has none.
type gate struct {
	addr   string
	target string
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	listen []func() (net.Listener, error)

	mu    sync.Mutex
	ls    []net.Listener // none while it is closed
	conns map[net.Conn]bool
}

// newGate returns an open gate, which closes once dir has a file with the name of its port.
func newGate(t *testing.T, target, dir string) *gate {
	t.Helper()
	return newGateAt(t, must.Get(oracle.FreePorts(1))(t)[0], target, dir)
}

// newGateAt is newGate for a port.
func newGateAt(t *testing.T, port int, target, dir string) *gate {
	t.Helper()
	g := gateAt(t, fmt.Sprintf("127.0.0.1:%d", port), target)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := os.Stat(filepath.Join(dir, fmt.Sprint(port))); err == nil {
				g.close()
			}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended; g.close() })
	return g
}

// gateAt returns an open gate at an address of this machine.
func gateAt(t *testing.T, addr, target string) *gate {
	t.Helper()
	g := &gate{addr: addr, target: target, conns: make(map[net.Conn]bool)}
	g.dial = func(ctx context.Context, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	g.listen = append(g.listen, func() (net.Listener, error) {
		return new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	})
	g.open(t)
	t.Cleanup(g.close)
	return g
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	var ls []net.Listener
	for _, listen := range g.listen {
		ls = append(ls, must.Get(listen())(t))
	}
	g.mu.Lock()
	g.ls = ls
	g.mu.Unlock()
	for _, l := range ls {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go g.carry(c)
			}
		}()
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.ls {
		_ = l.Close()
	}
	g.ls = nil
	for c := range g.conns {
		_ = c.Close()
	}
}

// dialLimit is how long a gate tries to reach a server that doesn't answer.
const dialLimit = 5 * time.Second

func (g *gate) carry(c net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	s, err := g.dial(ctx, g.target)
	cancel()
	if err != nil {
		_ = c.Close()
		return
	}
	g.mu.Lock()
	if g.ls == nil {
		g.mu.Unlock()
		_, _ = c.Close(), s.Close()
		return
	}
	g.conns[c], g.conns[s] = true, true
	g.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{c, s}, {s, c}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = c.Close(), s.Close()
		})
	}
	both.Wait()
	g.mu.Lock()
	delete(g.conns, c)
	delete(g.conns, s)
	g.mu.Unlock()
}

// reopen opens a gate that a file in dir has closed.
func (g *gate) reopen(t *testing.T, dir string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(g.addr)
	_ = os.Remove(filepath.Join(dir, port))
	g.close()
	g.open(t)
}
