package takeover

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestKilled: whatever is killed, stopped or cut off while the servers follow, take over and serve,
// no acknowledged write is lost and no lock has two holders. Each round has its own seed.
func TestKilled(t *testing.T) {
	need(t)
	for n := range *rounds {
		seed := *seed + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			if *rounds == 1 {
				t.Parallel()
			}
			round(t, seed)
		})
	}
}

func round(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 36))
	var flags []string
	if random.IntN(2) == 0 {
		flags = append(flags, "--serve")
	}
	net := newSpaces(t, seed)
	f := &faults{rig: newRigIn(t, net, 3, oracle.Options{}, flags...), net: net, random: random}
	t.Log("flags ", flags)
	l := startLoad(t, f.addrs())
	for _, s := range f.new {
		s.launch()
	}
	if random.IntN(2) == 0 {
		after(random, 2*time.Second)
		f.any().inject()() // while the state arrives
	}
	f.inSync()
	for range 1 + random.IntN(3) {
		f.last(f.any())
		f.inSync()
		l.goesOn()
	}
	at := step(seed % uint64(steps))
	if *atStep >= 0 {
		at = step(*atStep)
	}
	l.abandon(f.gates[random.IntN(len(f.gates))].addr)
	f.cutoverAmongFaults(at)
	l.goesOn()
	for range 2 {
		f.last(f.ours())
		l.goesOn()
	}
	var addrs []string
	for _, s := range f.new {
		addrs = append(addrs, s.addr)
	}
	l.check(addrs...)
	t.Logf("%d sessions have expired", l.expired())
}

var atStep = flag.Int("at", -1, "`step` of the cutover at which TestKilled injects its first fault, from 0; by default it follows from the seed")

// after waits for a time below limit.
func after(random *rand.Rand, limit time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(limit))))
}

// last injects a fault for a while: a moment, or so long that the servers notice a cut.
func (f *faults) last(one fault) {
	limit, least := 1500*time.Millisecond, time.Duration(0)
	if f.random.IntN(3) == 0 {
		limit, least = 3*time.Second, 6*time.Second
	}
	f.t.Log(one.name)
	repair := one.inject()
	<-time.After(least)
	after(f.random, limit)
	repair()
}

// step is a step of a cutover during which a fault is injected.
type step int

const (
	preflight step = iota
	fencing        // after the preflight
	proving        // after the fence is closed
	opening        // after the newest transaction is proved
	opened         // after the cutover
	steps
)

func (s step) String() string {
	return [...]string{"the preflight", "the fence", "the proof", "the opening", "the time after it"}[s]
}

// begins is how the line of a cutover begins that says that a step does.
func (s step) begins() string {
	return [...]string{fencing: "closing", proving: "no old server", opening: "the newest transaction", opened: ""}[s]
}

// cutoverAmongFaults takes over while a server fails at a step, and tries again with open gates
// until that succeeds.
func (f *faults) cutoverAmongFaults(at step) {
	f.t.Helper()
	for try := 0; ; try++ {
		for _, s := range f.old { // otherwise the preflight ends the cutover
			wait.Eventually(f.t, "the old server to serve", func() bool { _, err := process.Ask(s.Addr(), time.Second); return err == nil })
		}
		one := fault{"no fault", func() func() { return func() {} }}
		if try < 5 {
			one = f.at(at)
		}
		out, err := f.cutoverWith(at, one)
		if err == nil || f.open() {
			return
		}
		f.t.Logf("try %d: %v\n%s", try, err, lastLine(out))
		if try > 20 {
			f.t.Fatal("no cutover succeeds")
		}
		for _, g := range f.gates {
			g.reopen(f.t, f.fence)
		}
		f.inSync()
		if at = step(f.random.IntN(int(steps))); try == 0 {
			at = opening // the other steps succeed now and then
		}
	}
}

// cutoverWith takes over and injects the fault at a step.
func (f *faults) cutoverWith(at step, one fault) (out string, err error) {
	f.t.Helper()
	limit := time.Duration(f.random.IntN(3000)) * time.Millisecond
	if f.random.IntN(3) == 0 {
		limit = 8 * time.Second
	}
	early := time.Duration(f.random.IntN(100)) * time.Millisecond
	// The fence command waits, so that a fault of this step comes before it while clients continue.
	fence := time.Duration(f.random.IntN(500)) * time.Millisecond
	goOn := filepath.Join(f.fence, "go")
	_ = os.Remove(goOn)
	cmd := exec.CommandContext(f.t.Context(), process.Binary(f.t), "mirror", "cutover", "--fence-timeout", "10s",
		"--fence-command", fmt.Sprintf("until [ -e %s ]; do sleep 0.01; done; touch %s/{port}", goOn, f.fence), f.leader().config)
	pipe := must.Get(cmd.StderrPipe())(f.t)
	result := &strings.Builder{}
	cmd.Stdout = result
	must.Do(f.t, cmd.Start())
	lines := linesOf(pipe)
	run := injection{f: f, fault: one, step: at, limit: limit}
	var timer, slow <-chan time.Time
	if at == preflight {
		timer = time.After(early)
	}
	var text []string
	for lines != nil {
		select {
		case l, more := <-lines:
			if !more {
				lines = nil
				break
			}
			text = append(text, l.text)
			run.passed(l)
			if begins := at.begins(); begins != "" && strings.HasPrefix(l.text, begins) {
				run.inject()
			}
			if strings.HasPrefix(l.text, fencing.begins()) {
				slow = time.After(fence)
			}
		case <-slow:
			must.Do(f.t, os.WriteFile(goOn, nil, 0o600))
		case <-timer:
			run.inject()
		case <-run.repairs:
			run.repair()
		}
	}
	err = cmd.Wait()
	if at == opened && err == nil {
		run.inject()
	}
	if run.undo != nil {
		<-run.repairs
	}
	run.repair()
	return strings.Join(append(text, result.String()), "\n"), err
}

// line is a line of a command's output.
type line struct {
	text string
	at   time.Time
}

func linesOf(r io.Reader) <-chan line {
	lines := make(chan line, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- line{s.Text(), time.Now()}
		}
		lines <- line{"", time.Now()}
	}()
	return lines
}

// injection is a fault during a cutover.
type injection struct {
	f *faults
	fault
	step    step
	limit   time.Duration
	began   time.Time        // when the fault was injected
	late    bool             // the next step had begun before that
	repairs <-chan time.Time // when the repair is due
	undo    func()
}

func (r *injection) inject() {
	if !r.began.IsZero() {
		return
	}
	r.began = time.Now()
	r.undo = r.fault.inject()
	r.repairs = time.After(r.limit)
}

// passed looks whether a line that was read after the fault was written before it. The end of
// the output counts as one.
func (r *injection) passed(l line) {
	r.late = r.late || !r.began.IsZero() && l.at.Before(r.began)
}

func (r *injection) repair() {
	r.repairs = nil
	if r.undo == nil {
		if r.began.IsZero() {
			r.f.t.Logf("the cutover ended before %v; meant for it: %s", r.step, r.name)
		}
		return
	}
	r.undo()
	r.undo = nil
	r.f.t.Logf("cutover, in %v (late: %v): %s, for %v", r.step, r.late, r.name, time.Since(r.began).Round(time.Millisecond))
}

// open reports whether the zkgo servers have taken over.
func (f *faults) open() (open bool) {
	f.t.Helper()
	must.Do(f.t, wait.Success(patience, "a zkgo server to say its phase", func() error {
		for _, s := range f.new {
			st, err := s.status()
			if err == nil && st.Leads {
				open = st.Phase == "open"
				return nil
			}
		}
		return fmt.Errorf("no server leads")
	}))
	return open
}

func lastLine(s string) string { return s[max(0, len(s)-400):] }
