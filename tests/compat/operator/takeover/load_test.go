package takeover

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/tests/kit/must"
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
	expired   atomic.Int64
	events    sync.WaitGroup
}

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
			}
		}
	})
	t.Cleanup(func() { c.Close() })
	wait.Eventually(t, "a session", p.connected.Load)
	return p
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// load is the work of clients, and what they know of its outcome.
type load struct {
	t       *testing.T
	people  []*person
	cancel  context.CancelFunc
	work    sync.WaitGroup
	acked   [4]atomic.Int64 // newest value that the ensemble has acknowledged, by writer
	tried   [4]atomic.Int64 // newest value that was sent
	longest atomic.Int64    // nanoseconds between two acknowledged writes of a writer

	mu       sync.Mutex
	created  map[string]string // data of acknowledged sequential znodes, by path
	holder   *person
	acquired int
	twice    []string // the sessions that held a lock at the same time
}

// startLoad makes clients of these addresses write, create and lock until stop.
func startLoad(t *testing.T, addrs []string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, cancel: cancel, created: make(map[string]string)}
	t.Cleanup(l.stop)
	admin := dial(t, addrs...)
	l.people = append(l.people, admin)
	for _, path := range []string{"/w", "/seq"} {
		must.Get(admin.Create(path, nil, 0, all))(t)
	}
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
	for n := int64(1); ctx.Err() == nil; n++ {
		l.tried[w].Store(n)
		_, err := p.Set(fmt.Sprint("/w/", w), []byte(strconv.FormatInt(n, 10)), -1)
		if err == nil {
			l.acked[w].Store(n)
			if gap := int64(time.Since(last)); gap > l.longest.Load() {
				l.longest.Store(gap)
			}
			last = time.Now()
		}
		pause(err)
	}
}

func (l *load) create(ctx context.Context, p *person, c int) {
	for n := 0; ctx.Err() == nil; n++ {
		data := fmt.Sprint(c, "-", n)
		path, err := p.Create("/seq/n-", []byte(data), zk.FlagSequence, all)
		if err == nil {
			l.mu.Lock()
			l.created[path] = data
			l.mu.Unlock()
		}
		pause(err)
		<-time.After(time.Millisecond)
	}
}

// lock takes a lock again and again. A client holds it from the time when Lock returns until it
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
		return nil
	})
	if err != nil {
		l.logLock()
		stacks := make([]byte, 1<<20)
		l.t.Fatalf("%v\n%s", err, stacks[:runtime.Stack(stacks, true)])
	}
}

// logLock logs who waits for the lock.
func (l *load) logLock() {
	c := l.people[0]
	names, _, err := c.Children("/turns")
	l.t.Log("/turns ", len(names), err)
	for _, name := range names {
		_, stat, err := c.Get("/turns/" + name)
		if err != nil {
			continue // it has gone
		}
		owner := -1
		for i, p := range l.people {
			if p.SessionID() == stat.EphemeralOwner {
				owner = i
			}
		}
		l.t.Logf("%s of client %d (%#x), since zxid %#x, %v", name, owner, stat.EphemeralOwner, stat.Czxid, time.UnixMilli(stat.Ctime).UTC())
	}
}

// check stops the clients and checks what they know against what the servers have.
func (l *load) check(addrs ...string) {
	l.t.Helper()
	l.stop()
	c := dial(l.t, addrs...)
	must.Get(c.Sync("/"))(l.t)
	for w := range l.acked {
		data, _, err := c.Get(fmt.Sprint("/w/", w))
		must.Do(l.t, err)
		n := must.Get(strconv.ParseInt(string(data), 10, 64))(l.t)
		if acked, tried := l.acked[w].Load(), l.tried[w].Load(); n < acked || n > tried {
			l.t.Errorf("writer %d: the value is %d, %d was acknowledged and %d tried", w, n, acked, tried)
		}
	}
	names, _, err := c.Children("/seq")
	must.Do(l.t, err)
	seen := make(map[string]string)
	for _, name := range names {
		data, _, err := c.Get("/seq/" + name)
		must.Do(l.t, err)
		if other, twice := seen[string(data)]; twice {
			l.t.Errorf("%s and %s are the same create", other, name)
		}
		seen[string(data)] = name
	}
	l.mu.Lock()
	for path, data := range l.created {
		if "/seq/"+seen[data] != path {
			l.t.Errorf("%s (%s) was acknowledged and is missing", path, data)
		}
	}
	for _, both := range slices.Compact(l.twice) {
		l.t.Errorf("the lock was held twice, by %s", both)
	}
	l.mu.Unlock()
	l.t.Logf("%s, longest pause of a writer %v", l.summary(), rounded(l.longest.Load()))
}

// expired returns how many sessions have expired.
func (l *load) expired() (n int64) {
	for _, p := range l.people {
		n += p.expired.Load()
	}
	return n
}
