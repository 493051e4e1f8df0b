package durability

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// runs returns how often to kill each store's server.
func runs(t *testing.T) int {
	t.Helper()
	if s := os.Getenv("CRASH_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("CRASH_RUNS=%q is no positive number", s)
		}
		return n
	}
	if testing.Short() {
		return 2
	}
	return 10
}

// TestKill kills a server again and again on one data directory, so that each
// start reads what several crashes have left, including snapshots.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"wal", "bolt"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			w := &world{store: store, dir: t.TempDir()}
			for i := range writers {
				w.writers = append(w.writers, &writer{id: i, versions: map[string]int64{}})
			}
			for run := range runs(t) {
				w.crash(t, run)
			}
			w.check(t)
			if w.acked() < int64(runs(t)) {
				t.Fatalf("only %d writes were acknowledged: this run shows nothing", w.acked())
			}
			t.Logf("%s: %d kills, %d acknowledged writes, none lost", store, runs(t), w.acked())
		})
	}
}

// writers is the number of concurrent writers.
const writers = 4

// world is one data directory and what its clients know.
type world struct {
	store   string
	dir     string
	writers []*writer
}

func (w *world) start(t *testing.T) *process.Server {
	t.Helper()
	return process.Start(t, w.dir, "--set", "logStore="+w.store, "--set", "snapCount=2000", "--set", "maxSessionTimeout=600000")
}

func (w *world) acked() (n int64) {
	for _, wr := range w.writers {
		n += wr.acked.Load()
	}
	return n
}

// crash starts the server, checks its state, lets the clients write until enough
// is acknowledged, and kills it in the middle.
func (w *world) crash(t *testing.T, run int) {
	t.Helper()
	srv := w.start(t)
	w.verify(t, srv)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, wr := range w.writers {
		wg.Go(func() { wr.load(stop) })
	}
	w.waitAcked(t, srv, w.acked()+int64(rand.IntN(3000)))
	srv.Kill()
	close(stop)
	wg.Wait()
	for _, wr := range w.writers {
		if wr.err != nil {
			t.Fatalf("run %d, writer %d: %v\n%s", run, wr.id, wr.err, srv.Output())
		}
	}
}

// waitAcked waits until n writes are acknowledged in total.
func (w *world) waitAcked(t *testing.T, srv *process.Server, n int64) {
	t.Helper()
	deadline := time.After(process.Patience)
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for w.acked() < n {
		select {
		case <-tick.C:
		case <-srv.Done():
			t.Fatalf("zkgo ended by itself:\n%s", srv.Output())
		case <-deadline:
			t.Fatalf("%d of %d writes acknowledged after %v\n%s", w.acked(), n, process.Patience, srv.Output())
		}
	}
}

// verify attaches every client to its session and checks the server's state
// against the client's replies.
func (w *world) verify(t *testing.T, srv *process.Server) {
	t.Helper()
	for _, wr := range w.writers {
		if err := wr.attach(srv.Addr); err != nil {
			t.Fatalf("writer %d: %v\n%s", wr.id, err, srv.Output())
		}
		if err := wr.verify(); err != nil {
			t.Fatalf("writer %d: %v\n%s", wr.id, err, srv.Output())
		}
	}
}

// check starts the server once more, verifies it, and stops it as an operator
// does.
func (w *world) check(t *testing.T) {
	t.Helper()
	srv := w.start(t)
	w.verify(t, srv)
	if err := srv.Stop(); err != nil {
		t.Errorf("stop: %v\n%s", err, srv.Output())
	}
}

// writer is one client with a session that survives all crashes. It pipelines
// sets of its own znodes and creates numbered ephemerals, and remembers the acknowledged ones.
type writer struct {
	id       int
	client   *process.Client
	acked    atomic.Int64
	err      error // error that ended load, except the kill
	zxid     int64 // newest seen
	created  int   // numbered znodes known to exist
	tried    int   // numbered znodes that may exist
	versions map[string]int64
	session  bool
}

// znodes is the number of znodes that each writer sets in turn.
const znodes = 4

func (wr *writer) counter(i int) string  { return fmt.Sprintf("/w%d-%d", wr.id, i) }
func (wr *writer) numbered(i int) string { return fmt.Sprintf("/e%d-%d", wr.id, i) }

// attach opens the writer's session or moves it to a new connection.
func (wr *writer) attach(addr string) error {
	var id int64
	var pw []byte
	if wr.client != nil {
		wr.client.Close()
		id, pw = wr.client.Session, wr.client.Password
	}
	c, err := process.Connect(addr, id, pw, 10*time.Minute)
	if err != nil {
		return fmt.Errorf("attach to session 0x%x: %w", id, err)
	}
	if wr.session && c.Session != id {
		return fmt.Errorf("session 0x%x became 0x%x", id, c.Session)
	}
	wr.client, wr.session = c, true
	return nil
}

// verify checks that no acknowledged write is missing.
func (wr *writer) verify() error {
	for i := range znodes {
		path := wr.counter(i)
		data, stat, err := wr.client.Get(path)
		if errors.Is(err, proto.ErrNoNode) && wr.versions[path] == 0 {
			if err := wr.client.Create(path, []byte("0"), proto.ModePersistent); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if int64(stat.Version) < wr.versions[path] {
			return fmt.Errorf("%s is at version %d, acknowledged was %d", path, stat.Version, wr.versions[path])
		}
		if want := strconv.Itoa(int(stat.Version)); string(data) != want {
			return fmt.Errorf("%s at version %s holds %q", path, want, data)
		}
		wr.versions[path] = int64(stat.Version)
	}
	return wr.verifyNumbered()
}

// verifyNumbered checks the numbered ephemerals and adopts the ones that exist although their
// acknowledgement was lost.
func (wr *writer) verifyNumbered() error {
	for i := range wr.tried {
		_, stat, err := wr.client.Get(wr.numbered(i))
		switch {
		case errors.Is(err, proto.ErrNoNode) && i >= wr.created:
			wr.tried = i // unknown outcomes end at the first create that did not happen
			return nil
		case err != nil:
			return fmt.Errorf("%s of %d acknowledged: %w", wr.numbered(i), wr.created, err)
		case stat.EphemeralOwner != wr.client.Session:
			return fmt.Errorf("%s is owned by 0x%x", wr.numbered(i), stat.EphemeralOwner)
		}
	}
	wr.created = wr.tried
	return nil
}

// load writes until the connection ends or stop is closed.
func (wr *writer) load(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if !wr.burst() {
			return
		}
	}
}

// burst pipelines one set of every znode and, while there are few, the next
// ephemeral, and reads the replies. It reports whether the connection is alive.
func (wr *writer) burst() bool {
	var reqs []process.Request
	for i := range znodes {
		path := wr.counter(i)
		next := strconv.FormatInt(wr.versions[path]+1, 10)
		reqs = append(reqs, process.Request{Op: proto.OpSetData, Record: &proto.SetDataRequest{Path: path, Data: []byte(next), Version: int32(wr.versions[path])}})
	}
	if wr.tried < 200 {
		reqs = append(reqs, process.Request{Op: proto.OpCreate, Record: &proto.CreateRequest{
			Path: wr.numbered(wr.tried), ACL: proto.OpenACL(), Flags: int32(proto.ModeEphemeral)}})
		wr.tried++
	}
	if wr.client.Send(reqs...) != nil {
		return false
	}
	first := wr.client.Xid() - int32(len(reqs)) + 1 // they begin at 1 after every kill
	for i, q := range reqs {
		reply, err := wr.client.Receive()
		if err != nil {
			return false
		}
		if want := first + int32(i); reply.Xid != want {
			wr.err = fmt.Errorf("the reply to request %d is for request %d", want, reply.Xid)
			return false
		}
		if !wr.note(i, q, reply) {
			return false
		}
	}
	return true
}

// note records one reply.
func (wr *writer) note(i int, q process.Request, reply process.Reply) bool {
	switch {
	case reply.Err != proto.Ok:
		wr.err = fmt.Errorf("%v %d of a burst: %w", q.Op, i, reply.Err)
		return false
	case reply.Zxid <= wr.zxid:
		wr.err = fmt.Errorf("zxid 0x%x after 0x%x", reply.Zxid, wr.zxid)
		return false
	}
	wr.zxid = reply.Zxid
	wr.acked.Add(1)
	if q.Op == proto.OpCreate {
		wr.created++
	} else {
		wr.versions[wr.counter(i)]++
	}
	return true
}
