package locks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// run is a set of workers and servers, and the faults injected into them.
type run struct {
	t        *testing.T
	ctx      context.Context
	tools    languages
	servers  *servers.Ensemble
	client   *client.Client // of the test itself
	register *register
	dir      string
	began    time.Time

	mu      sync.Mutex
	workers map[int]*team
	started int
	done    map[string]int // faults that had an effect
}

// team is one worker process and the arguments to restart it.
type team struct {
	*process.Proc
	name string
	lang string
	jobs []string
}

// newRun starts servers and registers for the locks at paths.
func newRun(t *testing.T, k languages, n int, real bool, paths ...string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), *limit, fmt.Errorf("the run takes longer than %v", *limit))
	t.Cleanup(cancel)
	r := &run{t: t, ctx: ctx, tools: k, dir: t.TempDir(), began: time.Now(), workers: make(map[int]*team), done: make(map[string]int)}
	r.servers = start(t, n, real)
	c, err := client.Connect(ctx, strings.Join(r.servers.Addrs(), ","))
	if err != nil {
		t.Fatal(err)
	}
	r.client = c
	t.Cleanup(func() { c.Close() })
	must.Get(c.Create(ctx, "/data", nil))(t)
	for _, path := range paths {
		must.Get(c.Create(ctx, "/data"+path, []byte("0")))(t)
	}
	if r.register, err = newRegister(r.there); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.register.stop)
	return r
}

// there reports whether a znode exists, once a server has answered.
func (r *run) there(ctx context.Context, path string) bool {
	for ctx.Err() == nil {
		if r.client.Sync(ctx, path) != nil {
			continue
		}
		if _, there, err := r.client.Exists(ctx, path); err == nil {
			return there
		}
	}
	return false
}

// start starts a worker process; jobs are KIND:PATH:THREADS.
func (r *run) start(lang string, jobs ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	args := append(r.tools.command(r.t, lang), strings.Join(r.servers.Addrs(), ","), r.register.addr())
	name := fmt.Sprint(lang, r.started)
	args = append(args, jobs...)
	p := must.Get(process.Launch(exec.Command(args[0], args[1:]...), filepath.Join(r.dir, name+".log")))(r.t)
	r.workers[p.PID()] = &team{p, name, lang, jobs}
	r.t.Cleanup(func() {
		p.Kill()
		if r.t.Failed() {
			r.t.Logf("%s:\n%s", name, p.Tail())
		}
	})
}

func (r *run) worker(pid int) (*team, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.workers[pid]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("there is no worker %d", pid)
}

// acquisitions waits until there have been n acquisitions.
func (r *run) acquisitions(n int) {
	r.t.Helper()
	if err := r.register.until(r.ctx, func() bool { return r.register.total >= n }); err != nil {
		r.fatal("%d acquisitions: %v", n, err)
	}
}

// more waits for n more acquisitions.
func (r *run) more(n int) {
	r.t.Helper()
	r.register.mu.Lock()
	have := r.register.total
	r.register.mu.Unlock()
	r.acquisitions(have + n)
}

// fatal ends a run that can't continue, and reports its results so far.
func (r *run) fatal(format string, args ...any) {
	r.t.Helper()
	r.report()
	r.t.Fatalf("void: "+format, args...)
}

// catch waits until a worker of a language has the lock, and withholds the worker's reply
// until its trap is released.
func (r *run) catch(path, lang, mode string) (*trap, *holder, *team) {
	r.t.Helper()
	trap := r.register.set(path, lang, mode)
	select {
	case h := <-trap.got:
		w, err := r.worker(h.pid)
		if err != nil {
			r.fatal("%v", err)
		}
		return trap, h, w
	case <-r.ctx.Done():
		r.fatal("no %s worker gets %s to %s: %v", lang, path, mode, context.Cause(r.ctx))
		return nil, nil, nil
	}
}

// follow waits until a later holder has entered and left.
func (r *run) follow(path string, h *holder) {
	r.t.Helper()
	from := 0
	err := r.register.until(r.ctx, func() bool {
		for ; from < len(r.register.events); from++ {
			if e := r.register.events[from]; e.line == path && e.kind == left && e.who.token > h.token {
				return true
			}
		}
		return false
	})
	if err != nil {
		r.fatal("nobody gets %s after %v: %v", path, h, err)
	}
}

// pause stops a holder before it writes, resumes it after another has entered, and checks
// the outcome of its writes.
func (r *run) pause(path, lang string) {
	r.t.Helper()
	trap, h, w := r.catch(path, lang, "write")
	if err := w.Freeze(); err != nil {
		r.fatal("stop %v: %v", h, err)
	}
	close(trap.on)
	r.follow(path, h)
	r.register.mu.Lock()
	before := len(r.register.events)
	r.register.mu.Unlock()
	if err := w.Thaw(); err != nil {
		r.fatal("go on, %v: %v", h, err)
	}
	if err := r.register.until(r.ctx, func() bool { return h.out }); err != nil {
		r.fatal("%v, who was stopped: %v", h, err)
	}
	r.register.mu.Lock()
	defer r.register.mu.Unlock()
	wrote, refused := false, false
	for _, e := range r.register.events[before:] {
		wrote = wrote || e.who == h && e.kind == plainly
		refused = refused || e.who == h && e.kind == fenced && !e.taken
	}
	switch {
	case h.znode == "ok":
		r.t.Errorf("%v: his late multi was done, though the lock's znode had gone", h)
	case lang == "go" && (wrote || refused):
		r.t.Errorf("%v wrote, though he asks his lease before", h)
	case lang != "go" && !(wrote && refused):
		r.t.Errorf("%v: the plain register took his late write: %v; the fenced one refused it: %v", h, wrote, refused)
	default:
		r.done["stop "+lang]++
	}
}

// end kills a holder before it writes, and starts a replacement after the next holder has
// the lock.
func (r *run) end(path, lang, mode string) {
	r.t.Helper()
	trap, h, w := r.catch(path, lang, mode)
	w.Kill()
	close(trap.on)
	r.follow(path, h)
	if h.out {
		r.fatal("%v, who was killed, has told that he is out", h)
	}
	r.start(w.lang, w.jobs...)
	r.done["kill "+lang]++
}

// together keeps a worker of each of some languages in a semaphore until all have entered.
func (r *run) together(path string, languages ...string) {
	r.t.Helper()
	for _, lang := range languages {
		trap, _, _ := r.catch(path, lang, "lease")
		defer close(trap.on)
	}
}

// crash kills the leader or another server, and restarts it after locks were acquired
// without it, if that is possible.
func (r *run) crash(leader bool) {
	r.t.Helper()
	var victim *servers.Server
	wait.Eventually(r.t, "a leader", func() bool { victim = r.servers.Leader(); return victim != nil })
	what := "kill leader"
	if !leader {
		victim, what = r.servers.Servers[victim.ID%len(r.servers.Servers)], "kill follower"
	}
	victim.Kill()
	if len(r.servers.Servers) > 1 {
		r.more(50)
	} else {
		what = "kill server"
	}
	if err := victim.Launch(); err != nil {
		r.fatal("%v", err)
	}
	if err := r.servers.Await(); err != nil {
		r.fatal("%v", err)
	}
	r.more(10)
	r.done[what]++
}

// finish ends the workers and judges the run. Every language must have acquired each of
// its locks at least least times.
func (r *run) finish(want, least int) {
	r.t.Helper()
	r.acquisitions(want)
	// A slow machine may need long to start a language.
	if err := r.register.until(r.ctx, func() bool { return len(r.short(least)) == 0 }); err != nil {
		r.fatal("not everybody has had each lock %d times: %v", least, err)
	}
	r.register.mu.Lock()
	r.register.over = true
	r.register.mu.Unlock()
	for _, w := range r.workers {
		select {
		case <-w.Done():
		case <-r.ctx.Done():
			r.fatal("%s does not end: %v", w.name, context.Cause(r.ctx))
		}
	}
	r.register.checks.Wait()
	r.report()
	for _, text := range r.judge() {
		r.t.Error(text)
	}
}

// short names the workers that have acquired a lock less often than that. The register
// must be locked.
func (r *run) short(least int) []string {
	var names []string
	for _, w := range r.workers {
		for _, job := range w.jobs {
			path := strings.Split(job, ":")[1]
			if n := r.register.workers[path][w.lang]; n < least {
				names = append(names, fmt.Sprintf("%s has acquired %s %d times, less than %d", w.lang, path, n, least))
			}
		}
	}
	return names
}

// judge returns the violations, according to the registers' record and the znodes.
func (r *run) judge() []string {
	wrong := judge(r.register.events)
	for path, l := range r.register.lines {
		b, stat, err := r.client.Get(r.ctx, "/data"+path)
		if errors.Is(err, client.ErrNoNode) {
			continue
		}
		value, verr := strconv.Atoi(string(b))
		if err := errors.Join(err, verr); err != nil {
			wrong = append(wrong, fmt.Sprintf("the znode of %s: %v", path, err))
		} else if value != int(stat.Version) {
			wrong = append(wrong, fmt.Sprintf("the znode of %s has %d after %d writes: a write is lost", path, value, stat.Version))
		}
		if l.writer == 0 {
			continue // a semaphore
		}
		if l.fenced == 0 {
			wrong = append(wrong, "void: nobody has written to the fenced register of "+path)
		}
		if stat.Version == 0 {
			wrong = append(wrong, "void: nobody has written to the znode of "+path)
		}
	}
	return wrong
}

// report logs the numbers.
func (r *run) report() {
	r.t.Helper()
	g := r.register
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d acquisitions in %.0f s\n", g.total, time.Since(r.began).Seconds())
	for _, path := range slices.Sorted(maps.Keys(g.lines)) {
		l := g.lines[path]
		fmt.Fprintf(&b, "  %s: %v; at most %d at a time; fenced register %d, plain register %d (%d writes destroyed)\n",
			path, g.workers[path], l.most, l.fenced, l.plain, l.lost)
	}
	fmt.Fprintf(&b, "done: %v\nlate writes: %v\nznodes looked for: %d\nfailures of workers: %d\n", r.done, g.stale, g.looked, len(g.fails))
	for i, text := range g.fails {
		if i < 20 {
			fmt.Fprintln(&b, "  ", text[:min(len(text), 200)])
		}
	}
	r.t.Log(b.String())
}
