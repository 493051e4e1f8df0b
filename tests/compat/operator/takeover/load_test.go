package takeover

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

var all = zk.WorldACL(zk.PermAll)

// sessionTimeout is long enough for any pause of these tests, unless the test kills what keeps
// a session alive.
const sessionTimeout = 20 * time.Second

// person is a client with an eye on its session.
type person struct {
	*zk.Conn
	connected atomic.Bool
	heard     atomic.Int64 // when its last request succeeded, in nanoseconds; 0: never
	expired   atomic.Int64
	early     atomic.Int64 // sessions that have expired too soon after that
	events    sync.WaitGroup
}

// alive is how long after a success a session must not expire: its timeout, less the time for an
// answer in a network with faults.
const alive = sessionTimeout / 2

// ok notes that a request has succeeded.
func (p *person) ok() { p.heard.Store(time.Now().UnixNano()) }

// dial returns a client of these addresses.
func dial(t *testing.T, addrs ...string) *person {
	t.Helper()
	c, events, err := zk.Connect(addrs, sessionTimeout, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	must.Do(t, err)
	p := &person{Conn: c}
	p.events.Go(func() {
		for e := range events {
			p.connected.Store(e.State == zk.StateHasSession)
			if e.State == zk.StateExpired {
				p.expired.Add(1)
				if at := p.heard.Load(); at > 0 && time.Since(time.Unix(0, at)) < alive {
					p.early.Add(1)
				}
			}
		}
	})
	t.Cleanup(func() { c.Close() })
	wait.Eventually(t, "a session", p.connected.Load)
	return p
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// load is the work of clients, with the outcomes that they know.
type load struct {
	t       *testing.T
	people  []*person
	cancel  context.CancelFunc
	work    sync.WaitGroup
	acked   [4]atomic.Int64 // newest value that the ensemble has acknowledged, by writer
	acks    [4]atomic.Int64 // number of acknowledged writes
	fired   atomic.Int64    // number of watches that have fired
	tried   [4]atomic.Int64 // newest value that was sent
	longest atomic.Int64    // nanoseconds between two acknowledged writes of a writer

	mu       sync.Mutex
	created  map[string]string // data of acknowledged sequential znodes, by path
	changed  map[string]bool   // the znodes with one change, if it was acknowledged
	holder   *person
	acquired int
	twice    []string // sessions that held a lock at the same time
	wrong    []string // what else was wrong
}

// startLoad makes clients of these addresses write, create and lock until stop.
func startLoad(t *testing.T, addrs []string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, cancel: cancel, created: make(map[string]string), changed: make(map[string]bool)}
	t.Cleanup(l.stop)
	admin := dial(t, addrs...)
	l.people = append(l.people, admin)
	for _, path := range []string{"/w", "/seq", "/gone"} {
		must.Get(admin.Create(path, nil, 0, all))(t)
	}
	l.work.Go(func() { l.look(ctx, admin) })
	l.work.Go(func() { l.comeAndGo(ctx, addrs) })
	for w := range l.acked {
		p := dial(t, addrs...)
		l.people = append(l.people, p)
		must.Get(p.Create(fmt.Sprint("/w/", w), []byte("0"), 0, all))(t)
		l.work.Go(func() { l.write(ctx, p, w) })
	}
	for c := range 2 {
		p := dial(t, addrs...)
		l.people = append(l.people, p)
		l.work.Go(func() { l.create(ctx, p, c) })
	}
	for range 3 {
		p := dial(t, addrs...)
		l.people = append(l.people, p)
		l.work.Go(func() { l.lock(ctx, p) })
	}
	p := dial(t, addrs...)
	l.people = append(l.people, p)
	l.work.Go(func() { l.watch(ctx, p) })
	return l
}

func (l *load) stop() {
	l.cancel()
	l.work.Wait()
}

// pause keeps a client from sending a request a thousand times a second that can't succeed.
func pause(err error) {
	if err != nil {
		<-time.After(5 * time.Millisecond)
	}
}

func (l *load) write(ctx context.Context, p *person, w int) {
	last := time.Now()
	var before zk.Stat
	for n := int64(1); ctx.Err() == nil; n++ {
		l.tried[w].Store(n)
		stat, err := p.Set(fmt.Sprint("/w/", w), []byte(strconv.FormatInt(n, 10)), -1)
		if err == nil {
			p.ok()
			l.acked[w].Store(n)
			l.acks[w].Add(1)
			if stat.Version <= before.Version || stat.Mzxid <= before.Mzxid || stat.Czxid != before.Czxid && before.Czxid != 0 {
				l.note("writer %d: the stat is %+v after %+v", w, *stat, before)
			}
			before = *stat
			if gap := int64(time.Since(last)); gap > l.longest.Load() {
				l.longest.Store(gap)
			}
			last = time.Now()
		}
		pause(err)
	}
}

func (l *load) note(format string, args ...any) {
	l.mu.Lock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	l.mu.Unlock()
}

// watch waits for changes of the first writer's znode, which is written again and again.
func (l *load) watch(ctx context.Context, p *person) {
	for newest := int64(0); ctx.Err() == nil; {
		data, _, fired, err := p.GetW("/w/0")
		if err != nil {
			pause(err)
			continue
		}
		p.ok()
		n, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil || n < newest {
			l.note("writer 0: the value is %q after %d", data, newest)
		}
		newest = n
		select {
		case e := <-fired:
			if e.Type == zk.EventNodeDataChanged {
				l.fired.Add(1)
			}
			<-time.After(time.Millisecond)
		case <-ctx.Done():
		}
	}
}

// look reads now and then.
func (*load) look(ctx context.Context, p *person) {
	for ctx.Err() == nil {
		if _, _, err := p.Get("/w"); err == nil {
			p.ok()
		}
		<-time.After(50 * time.Millisecond)
	}
}

// comeAndGo begins sessions, lets each create an ephemeral znode, and ends them.
func (l *load) comeAndGo(ctx context.Context, addrs []string) {
	for n := 0; ctx.Err() == nil; n++ {
		c, _, err := zk.Connect(addrs, sessionTimeout, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
		if err != nil {
			l.note("a client: %v", err)
			return
		}
		for err = zk.ErrNoServer; err != nil && !errors.Is(err, zk.ErrNodeExists) && ctx.Err() == nil; pause(err) {
			_, err = c.Create(fmt.Sprint("/gone/", n), nil, zk.FlagEphemeral, all)
		}
		c.Close()
		<-time.After(100 * time.Millisecond)
	}
}

// abandon leaves a session. The servers must delete its ephemeral znode when the session expires.
func (l *load) abandon(addr string) {
	l.t.Helper()
	must.Do(l.t, wait.Success(patience, "a session to abandon", func() error {
		c, err := process.Connect(addr, 0, nil, sessionTimeout)
		if err != nil {
			return err
		}
		err = c.Create("/gone/abandoned", nil, proto.ModeEphemeral)
		if errors.Is(err, proto.ErrNodeExists) { // from an attempt that received no answer
			err = nil
		}
		return errors.Join(err, c.Close())
	}))
}

// changed ends the data of a sequential znode after its only change.
const changed = " changed"

// create creates sequential znodes, and changes each once: no later change hides that this one
// is missing.
func (l *load) create(ctx context.Context, p *person, c int) {
	for n := 0; ctx.Err() == nil; n++ {
		data := fmt.Sprint(c, "-", n)
		path, err := p.Create("/seq/n-", []byte(data), zk.FlagSequence, all)
		if err == nil {
			p.ok()
			l.mu.Lock()
			l.created[path] = data
			l.mu.Unlock()
			_, err = p.Set(path, []byte(data+changed), 0)
		}
		if err == nil {
			l.mu.Lock()
			l.changed[path] = true
			l.mu.Unlock()
		}
		pause(err)
		<-time.After(time.Millisecond)
	}
}

// lock acquires a lock again and again. A client holds it from the time when Lock returns until it
// unlocks, loses its connection or its session.
func (l *load) lock(ctx context.Context, p *person) {
	for ctx.Err() == nil {
		lock := zk.NewLock(p.Conn, "/turns", all)
		if err := lock.Lock(); err != nil {
			for err != nil && ctx.Err() == nil {
				pause(err)
				err = p.withdraw("/turns")
			}
			continue
		}
		p.ok()
		l.mu.Lock()
		l.acquired++
		if h := l.holder; h != nil && h != p && h.connected.Load() {
			l.twice = append(l.twice, fmt.Sprintf("%#x and %#x", h.SessionID(), p.SessionID()))
		}
		l.holder = p
		l.mu.Unlock()
		<-time.After(2 * time.Millisecond)
		l.mu.Lock()
		if l.holder == p {
			l.holder = nil
		}
		l.mu.Unlock()
		for err := lock.Unlock(); err != nil && ctx.Err() == nil; err = p.withdraw("/turns") {
			pause(err)
		}
	}
}

// withdraw deletes the client's own znodes below a lock. A Lock that fails halfway leaves one,
// which would block the others as long as the session lives.
func (p *person) withdraw(lock string) error {
	names, _, err := p.Children(lock)
	if err != nil {
		return err
	}
	for _, name := range names {
		_, stat, err := p.Get(lock + "/" + name)
		if err == nil && stat.EphemeralOwner == p.SessionID() {
			err = p.Delete(lock+"/"+name, -1)
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// goesOn waits until every kind of work has made progress.
func (l *load) goesOn() {
	l.t.Helper()
	l.mu.Lock()
	created, acquired := len(l.created), l.acquired
	l.mu.Unlock()
	fired := l.fired.Load()
	var acked [len(l.acked)]int64
	for w := range acked {
		acked[w] = l.acked[w].Load()
	}
	err := wait.Success(patience, "the clients' work to go on", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for w := range acked {
			if l.acked[w].Load() < acked[w]+3 {
				return fmt.Errorf("writer %d is at %d", w, l.acked[w].Load())
			}
		}
		if len(l.created) < created+3 || l.acquired < acquired+3 {
			return fmt.Errorf("%d znodes created, %d locks acquired", len(l.created), l.acquired)
		}
		if n := l.fired.Load(); n < fired+3 {
			return fmt.Errorf("%d watches have fired", n)
		}
		return nil
	})
	if err != nil {
		l.t.Log(l.queue())
		stacks := make([]byte, 1<<20)
		l.t.Fatalf("%v\n%s", err, stacks[:runtime.Stack(stacks, true)])
	}
}

// queue lists the clients, and the znodes that wait for the lock with their owners.
func (l *load) queue() string {
	var b strings.Builder
	for _, p := range l.people {
		fmt.Fprintf(&b, "client %#x at %s, connected: %v\n", p.SessionID(), p.Server(), p.connected.Load())
	}
	names, _, err := l.people[0].Children("/turns")
	fmt.Fprintln(&b, "/turns: ", err)
	for _, name := range names {
		_, stat, err := l.people[0].Get("/turns/" + name)
		fmt.Fprintf(&b, "%s of %#x %v\n", name, stat.EphemeralOwner, err)
	}
	return b.String()
}

// check stops the clients and compares their knowledge with each server's state.
func (l *load) check(addrs ...string) {
	l.t.Helper()
	l.stop()
	for _, addr := range addrs {
		l.checkAt(addr)
	}
	l.mu.Lock()
	for _, both := range slices.Compact(l.twice) {
		l.t.Errorf("the lock was held twice, by %s", both)
	}
	for _, wrong := range l.wrong {
		l.t.Error(wrong)
	}
	l.mu.Unlock()
	for _, p := range l.people {
		if n := p.early.Load(); n > 0 {
			l.t.Errorf("%d sessions have expired within %v after they were heard, the last one before %#x", n, alive, p.SessionID())
		}
		p.Close()
	}
	c := dial(l.t, addrs...)
	must.Do(l.t, wait.Success(patience, "the ephemeral znodes of closed sessions to go", func() error {
		for _, path := range []string{"/turns", "/gone"} {
			names, _, err := c.Children(path)
			if err == nil && len(names) > 0 {
				err = fmt.Errorf("%q are in %s", names, path)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	l.t.Logf("%s, longest pause of a writer %v", l.summary(), rounded(l.longest.Load()))
}

// checkAt checks what one server has.
func (l *load) checkAt(addr string) {
	l.t.Helper()
	c := dial(l.t, addr)
	must.Get(c.Sync("/"))(l.t)
	for w := range l.acked {
		data, stat, err := c.Get(fmt.Sprint("/w/", w))
		must.Do(l.t, err)
		n := must.Get(strconv.ParseInt(string(data), 10, 64))(l.t)
		acked, acks, tried := l.acked[w].Load(), l.acks[w].Load(), l.tried[w].Load()
		if n < acked || n > tried {
			l.t.Errorf("%s: writer %d: the value is %d, %d was acknowledged and %d tried", addr, w, n, acked, tried)
		}
		if v := int64(stat.Version); v < acks || v > tried {
			l.t.Errorf("%s: writer %d: the version is %d, %d writes were acknowledged and %d tried", addr, w, v, acks, tried)
		}
	}
	names, _, err := c.Children("/seq")
	must.Do(l.t, err)
	seen := make(map[string]string)
	for _, name := range names {
		b, stat, err := c.Get("/seq/" + name)
		must.Do(l.t, err)
		data, is := strings.CutSuffix(string(b), changed)
		if other, twice := seen[data]; twice {
			l.t.Errorf("%s: %s and %s are the same create", addr, other, name)
		}
		seen[data] = name
		l.mu.Lock()
		if acked := l.changed["/seq/"+name]; acked && !is || is != (stat.Version == 1) {
			l.t.Errorf("%s: %s has the data %q and the version %d; its change was acknowledged: %v", addr, name, b, stat.Version, acked)
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, data := range l.created {
		if "/seq/"+seen[data] != path {
			l.t.Errorf("%s: %s (%s) was acknowledged and is missing", addr, path, data)
		}
	}
	c.Close()
}

// expired returns how many sessions have expired.
func (l *load) expired() (n int64) {
	for _, p := range l.people {
		n += p.expired.Load()
	}
	return n
}
