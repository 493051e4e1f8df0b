package locks

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
)

// leases is the size of a semaphore; the workers use the same.
const leases = 3

// register has the values that the locks protect: one of each kind for every lock, served on a TCP
// port. It records the requests in order.
type register struct {
	listener net.Listener
	there    func(ctx context.Context, path string) bool // reports whether a znode exists
	ctx      context.Context
	cancel   context.CancelFunc
	checks   sync.WaitGroup // for znodes that must be gone

	mu      sync.Mutex
	changed *sync.Cond
	lines   map[string]*line
	events  []event
	workers map[string]map[string]int // acquisitions by line and language
	total   int
	stale   map[string]int // writes of holders that another had followed, by outcome
	fails   []string
	looked  int  // number of znode checks
	over    bool // the workers must end
}

// line contains one lock's registers and current holders.
type line struct {
	plain, fenced int
	greatest      int64 // greatest token of all that have entered
	writer        int64 // greatest token of all that have written
	lost          int   // writes to the plain register that another overwrote
	in            map[*holder]bool
	most          int // most living workers at a time
	traps         []*trap
}

// trap waits for the next worker of a kind to get the lock.
type trap struct {
	lang, mode string
	got        chan *holder
	on         chan struct{} // closed to send its reply
}

// newRegister returns a register that serves until stop.
func newRegister(there func(ctx context.Context, path string) bool) (*register, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &register{listener: l, there: there, lines: make(map[string]*line), workers: make(map[string]map[string]int), stale: make(map[string]int)}
	r.changed = sync.NewCond(&r.mu)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(conn)
		}
	}()
	return r, nil
}

func (r *register) addr() string { return r.listener.Addr().String() }

func (r *register) stop() {
	r.cancel()
	r.listener.Close()
}

// set sets a trap for a worker of a language that holds a lock in a mode.
func (r *register) set(path, lang, mode string) *trap {
	t := &trap{lang: lang, mode: mode, got: make(chan *holder, 1), on: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(path).traps = append(r.line(path).traps, t)
	return t
}

func (r *register) line(path string) *line {
	l := r.lines[path]
	if l == nil {
		l = &line{in: make(map[*holder]bool)}
		r.lines[path] = l
	}
	return l
}

// until waits until what returns true. It calls what with the register locked.
func (r *register) until(ctx context.Context, what func() bool) error {
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !what() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.changed.Wait()
	}
	return nil
}

// serve serves one worker.
func (r *register) serve(conn net.Conn) {
	defer conn.Close()
	c := &caller{r: r}
	in := bufio.NewScanner(conn)
	defer c.gone()
	for in.Scan() {
		answer, err := c.answer(strings.Fields(in.Text()))
		if err != nil {
			r.failed(fmt.Sprintf("%q: %v", in.Text(), err))
			return
		}
		if _, err := fmt.Fprintln(conn, answer); err != nil {
			return
		}
	}
}

func (r *register) failed(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = append(r.fails, text)
}

// caller is one worker's thread.
type caller struct {
	r    *register
	lang string
	pid  int
	path string // of the lock
	who  *holder
}

// gone records that the worker has ended, perhaps in the middle of its turn.
func (c *caller) gone() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.who != nil {
		c.who.dead = true
	}
}

// answer executes a worker's request.
func (c *caller) answer(words []string) (string, error) {
	if len(words) < 2 {
		return "", fmt.Errorf("too short")
	}
	switch words[0] {
	case "hello":
		if len(words) != 4 {
			return "", fmt.Errorf("not LANG PID PATH")
		}
		c.lang, c.path = words[1], words[3]
		var err error
		c.pid, err = strconv.Atoi(words[2])
		return "ok", err
	case "fail":
		c.r.failed(fmt.Sprintf("%s %d %s: %s", c.lang, c.pid, c.path, strings.Join(words[1:], " ")))
		return "ok", nil
	case "enter":
		if len(words) != 4 {
			return "", fmt.Errorf("not MODE TOKEN PATH")
		}
		token, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return "", err
		}
		return c.enter(&holder{lang: c.lang, pid: c.pid, mode: words[1], token: token, path: words[3]}), nil
	}
	if c.who == nil || c.who.out {
		return "", fmt.Errorf("who is not in")
	}
	switch words[0] {
	case "plain", "fenced":
		value, err := strconv.Atoi(words[1])
		return c.write(words[0], value), err
	case "znode", "lost":
		return c.note(words[0] + " " + words[1]), nil
	case "exit":
		return c.exit(words[1] == "held"), nil
	}
	return "", fmt.Errorf("unknown")
}

// enter lets a holder in, and starts a check for every holder that should be gone.
func (c *caller) enter(h *holder) string {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.line(c.path)
	c.who = h
	r.suspect(c.path, l, h)
	l.in[h] = true
	l.count()
	r.total++
	if r.workers[c.path] == nil {
		r.workers[c.path] = make(map[string]int)
	}
	r.workers[c.path][h.lang]++
	refused := h.token < l.writer || h.mode == "write" && h.token < l.greatest
	l.greatest = max(l.greatest, h.token)
	if h.mode == "write" {
		l.writer = max(l.writer, h.token)
	}
	if h.mode != "lease" {
		r.events = append(r.events, event{kind: entered, line: c.path, who: h})
	}
	values := fmt.Sprint(l.plain, " ", l.fenced)
	if refused {
		values = fmt.Sprint(l.plain, " refused")
	}
	r.changed.Broadcast()
	for i, t := range l.traps {
		if t.lang == h.lang && t.mode == h.mode {
			l.traps = append(l.traps[:i:i], l.traps[i+1:]...)
			t.got <- h
			r.mu.Unlock()
			<-t.on
			r.mu.Lock()
			break
		}
	}
	return values
}

// count updates the greatest number of holders at a time.
func (l *line) count() {
	n := 0
	for h := range l.in {
		if !h.dead {
			n++
		}
	}
	l.most = max(l.most, n)
}

// suspect checks, in the background, for znodes that must be gone by now. If a znode still
// exists, it must have existed ever since its holder acquired it.
func (r *register) suspect(path string, l *line, h *holder) {
	if h.mode == "lease" {
		r.tooMany(path, l, h)
		return
	}
	older := func(old, young *holder) {
		r.looked++
		r.checks.Go(func() {
			if r.there(r.ctx, old.path) {
				r.add(event{kind: alive, line: path, who: young, other: old})
			}
		})
	}
	for other := range l.in {
		switch {
		case h.mode == "read" && other.mode == "read":
		case other.token < h.token:
			older(other, h)
			delete(l.in, other)
		default:
			older(h, other)
		}
	}
	if h.token < l.writer || h.mode == "write" && h.token < l.greatest {
		older(h, &holder{lang: "somebody", token: l.greatest})
	}
}

// tooMany is suspect for semaphores.
func (r *register) tooMany(path string, l *line, h *holder) {
	if len(l.in) < leases {
		return
	}
	r.looked++
	all := []*holder{h}
	for other := range l.in {
		all = append(all, other)
	}
	r.checks.Go(func() {
		n := 0
		for _, one := range all {
			if r.there(r.ctx, one.path) {
				n++
				continue
			}
			r.mu.Lock()
			delete(l.in, one)
			r.mu.Unlock()
		}
		if n > leases {
			r.add(event{kind: alive, line: path, who: h, other: all[1]})
		}
	})
}

func (r *register) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// write writes to one of the registers.
func (c *caller) write(which string, value int) string {
	r, h := c.r, c.who
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.line(c.path)
	late := h.token < l.greatest
	e := event{kind: plainly, line: c.path, who: h, value: value}
	switch {
	case which == "plain":
		if value != l.plain+1 {
			l.lost += l.plain + 1 - value
		}
		l.plain = value
		e.taken = true
	case !late:
		e.kind, e.taken = fenced, true
		l.fenced = value
	default:
		e.kind = fenced
	}
	r.events = append(r.events, e)
	outcome := "ok"
	if !e.taken {
		outcome = "refused"
	}
	if late {
		r.stale[which+" "+outcome]++
	}
	return outcome
}

// note counts a worker's reports about itself.
func (c *caller) note(what string) string {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	which, outcome, _ := strings.Cut(what, " ")
	if which == "znode" {
		c.who.znode = outcome
	}
	if c.who.token < r.line(c.path).greatest {
		// If ok, it wrote in time and reported late: the values and versions show it.
		r.stale[what]++
	} else if what == "znode unknown" || what == "znode refused" {
		r.stale["in time, but "+what]++
	}
	return "ok"
}

// exit lets a holder out.
func (c *caller) exit(held bool) string {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	c.who.out = true
	delete(r.line(c.path).in, c.who)
	r.events = append(r.events, event{kind: left, line: c.path, who: c.who, held: held})
	r.changed.Broadcast()
	if r.over {
		return "end"
	}
	return "go"
}
