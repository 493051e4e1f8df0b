package failover

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

// Result is the result of one scenario for one program.
type Result struct {
	Scenario  string
	Program   string
	Took      float64    // seconds
	Skipped   string     `json:",omitempty"` // why it didn't run
	Incidents []Incident `json:",omitempty"`
	// Values are other figures, each a list of samples in the unit of its name.
	Values    map[string][]float64 `json:",omitempty"`
	Elections int64                // unnecessary ones
	Outcome   Outcome
}

func (r *Result) add(name string, v float64) {
	if r.Values == nil {
		r.Values = map[string][]float64{}
	}
	r.Values[name] = append(r.Values[name], v)
}

// ensemble is the servers that a scenario disturbs.
type ensemble struct {
	*servers.Ensemble
	crowds int     // gathered so far; each gets its own znode names
	disks  []*disk // the servers' disks, if they can hang
}

// size is the number of servers.
const size = 3

// start starts an ensemble in a directory and returns when all serve.
func start(p servers.Program, dir string) (*ensemble, error) {
	e, err := servers.Start(p, dir, size)
	return &ensemble{Ensemble: e}, err
}

// Scenario is an event that happens to an ensemble. It leaves the ensemble complete.
type Scenario struct {
	Name string
	run  func(e *ensemble, c *crowd, r *Result) error
	// disks means that every server needs a disk that can hang.
	disks bool
	// alone means that the scenario runs without clients.
	alone bool
}

// measure runs a scenario on an ensemble.
func (s Scenario) measure(e *ensemble) (r Result, err error) {
	r = Result{Scenario: s.Name, Program: e.Name}
	began := time.Now()
	defer func() { r.Took = time.Since(began).Seconds() }()
	if s.alone {
		return r, s.run(e, nil, &r)
	}
	c, err := gather(e)
	if err != nil {
		return r, err
	}
	if err := s.run(e, c, &r); err != nil {
		c.disperse()
		return r, err
	}
	r.Outcome, err = c.finish()
	return r, err
}

// leaderOf returns the leader, or an error if there is none.
func leaderOf(e *ensemble) (*servers.Server, error) {
	if l := e.Leader(); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%s has no leader", e.Name)
}

// whole starts the servers that don't run and waits until the ensemble is complete and
// every client is connected to its own server.
func whole(e *ensemble, c *crowd) error {
	for _, s := range e.Servers {
		if !s.Running() {
			if err := s.Launch(); err != nil {
				return err
			}
		}
	}
	if err := e.Await(); err != nil {
		return err
	}
	if err := c.home(); err != nil {
		return err
	}
	time.Sleep(lull)
	return nil
}

// repeat makes something happen to the leader n times.
func repeat(e *ensemble, c *crowd, r *Result, n int, silent bool, happen func(l *servers.Server) error, after func(l *servers.Server) error) error {
	for range n {
		l, err := leaderOf(e)
		if err != nil {
			return err
		}
		in, err := c.incident(l, silent, func() error { return happen(l) })
		if err == nil && after != nil {
			err = after(l)
		}
		if err == nil {
			err = whole(e, c)
		}
		if err != nil {
			return err
		}
		r.Incidents = append(r.Incidents, in)
	}
	return nil
}

// KillLeader kills the leader n times, with SIGKILL.
func KillLeader(n int) Scenario {
	return Scenario{Name: "kill", run: func(e *ensemble, c *crowd, r *Result) error {
		return repeat(e, c, r, n, false, func(l *servers.Server) error { l.Kill(); return nil }, nil)
	}}
}

// VanishLeader freezes the leader n times, so that it sends nothing but no connection ends.
// To the other servers this looks like a machine that lost power. After the thaw the server
// should rejoin without help.
func VanishLeader(n int) Scenario {
	return Scenario{Name: "vanish", run: func(e *ensemble, c *crowd, r *Result) error {
		return repeat(e, c, r, n, true,
			(*servers.Server).Freeze, (*servers.Server).Thaw)
	}}
}

// StopLeader stops the leader n times, with SIGTERM.
func StopLeader(n int) Scenario {
	return Scenario{Name: "stop", run: func(e *ensemble, c *crowd, r *Result) error {
		return repeat(e, c, r, n, false, (*servers.Server).Stop, nil)
	}}
}

// unnoticed is the longest usual pause between writes. A longer one counts as time
// without writes.
const unnoticed = 25 * time.Millisecond

// RollingRestart stops and starts one server after the other, n times, like an upgrade.
func RollingRestart(n int) Scenario {
	return Scenario{Name: "roll", run: func(e *ensemble, c *crowd, r *Result) error {
		for range n {
			began := time.Now()
			in, err := c.incident(nil, false, func() error {
				for _, s := range e.Servers {
					if err := errors.Join(s.Stop(), s.Launch()); err != nil {
						return err
					}
					if err := e.Await(); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			var all []time.Time
			for _, m := range c.with(write) {
				all = append(all, m.since(began)...)
			}
			r.Incidents = append(r.Incidents, in)
			r.add("without writes, ms", millis(total(sorted(all), unnoticed)))
			r.add("whole round, s", time.Since(began).Seconds())
			if err := whole(e, c); err != nil {
				return err
			}
		}
		return nil
	}}
}

// RestartAll kills all servers at once and starts them again, n times.
func RestartAll(n int) Scenario {
	return Scenario{Name: "restart", run: func(e *ensemble, c *crowd, r *Result) error {
		for range n {
			var started time.Time
			in, err := c.incident(nil, false, func() error {
				e.Kill()
				started = time.Now()
				return e.Launch()
			})
			if err != nil {
				return err
			}
			var all []time.Time
			for _, m := range c.with(write) {
				all = append(all, m.since(started)...)
			}
			r.Incidents = append(r.Incidents, in)
			r.add("start to first write, ms", millis(sorted(all)[0].Sub(started)))
			if err := whole(e, c); err != nil {
				return err
			}
		}
		return nil
	}}
}

// quiet runs a disturbance that doesn't call for an election, and counts the elections
// that happen anyway.
func quiet(e *ensemble, c *crowd, r *Result, disturb func() error) error {
	before := e.Epoch()
	in, err := c.incident(nil, false, disturb)
	if err != nil {
		return err
	}
	if err := e.Await(); err != nil {
		return err
	}
	r.Elections = e.Epoch() - before
	r.Incidents = append(r.Incidents, in)
	return nil
}

// hogs is the number of processes that use all the processor time they get, and manyHogs
// the number on an overloaded machine.
const (
	hogs     = 4
	manyHogs = 50
)

// Starve runs the ensemble beside four processes that only use the processors.
func Starve(d time.Duration) Scenario { return beside("starve", hogs, d) }

// Overload is Starve with fifty such processes.
func Overload(d time.Duration) Scenario { return beside("overload", manyHogs, d) }

// beside runs the ensemble beside n such processes for d.
func beside(name string, n int, d time.Duration) Scenario {
	return Scenario{Name: name, run: func(e *ensemble, c *crowd, r *Result) error {
		return quiet(e, c, r, func() error {
			for range n {
				hog, err := process.Launch(exec.Command("sh", "-c", "while :; do :; done"), "")
				if err != nil {
					return err
				}
				defer hog.Kill()
			}
			time.Sleep(d)
			return nil
		})
	}}
}

// stall is how long a disk hangs each time.
const stall = time.Second

// StallDisks makes each server's disk hang for a second in turn, then all disks at once,
// and repeats that for d.
func StallDisks(d time.Duration) Scenario {
	return Scenario{Name: "stall", disks: true, run: func(e *ensemble, c *crowd, r *Result) error {
		return quiet(e, c, r, func() error {
			for end, k := time.Now().Add(d), 0; time.Now().Before(end); k++ {
				hit := e.disks
				if one := k % (len(e.disks) + 1); one < len(e.disks) {
					hit = hit[one : one+1]
				}
				var release []func()
				for _, d := range hit {
					release = append(release, d.HoldFsyncs())
				}
				time.Sleep(stall)
				for _, f := range release {
					f()
				}
				r.add("stalled disks", float64(len(hit)))
				time.Sleep(stall)
			}
			return nil
		})
	}}
}

// Idle measures n sequential writes on an otherwise idle ensemble, by a client at the
// leader and by one at a follower.
func Idle(n int) Scenario {
	return Scenario{Name: "idle", alone: true, run: func(e *ensemble, _ *crowd, r *Result) error {
		l, err := leaderOf(e)
		if err != nil {
			return err
		}
		follower := e.Servers[0]
		if follower == l {
			follower = e.Servers[1]
		}
		// We alternate, so that other load on the machine affects both.
		const turns = 10
		for range turns {
			for name, s := range map[string]*servers.Server{"leader, ms": l, "follower, ms": follower} {
				if err := lone(s, n/turns, func(d time.Duration) { r.add(name, millis(d)) }); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// lone writes n times from a single client, with a pause before each write.
func lone(at *servers.Server, n int, took func(time.Duration)) error {
	s := &session{timeout: sessionTimeout}
	if err := s.connect(at.Addr); err != nil {
		return err
	}
	defer s.cut()
	path := fmt.Sprintf("/idle-%d", at.ID)
	if _, err := s.do(proto.OpCreate, &proto.CreateRequest{Path: path, ACL: proto.OpenACL()}); err != nil && !errors.Is(err, proto.ErrNodeExists) {
		return err
	}
	for range n {
		time.Sleep(2 * time.Millisecond)
		began := time.Now()
		if _, err := s.do(proto.OpSetData, &proto.SetDataRequest{Path: path, Data: make([]byte, 100), Version: -1}); err != nil {
			return err
		}
		took(time.Since(began))
	}
	_, err := s.do(proto.OpCloseSession, nil)
	return err
}

// Measure runs a program through scenarios, in a new directory. The results are valid even if it
// returns an error.
func Measure(p servers.Program, dir string, scenarios []Scenario, say func(Result)) (results []Result, err error) {
	var plain *ensemble
	defer func() {
		if plain != nil {
			plain.Kill()
		}
	}()
	for _, s := range scenarios {
		var r Result
		switch {
		case s.disks:
			r, err = onDisks(p, filepath.Join(dir, s.Name), s)
		default:
			if plain == nil {
				if plain, err = start(p, dir); err != nil {
					return results, err
				}
			}
			r, err = s.measure(plain)
		}
		if err != nil {
			return results, fmt.Errorf("%s, %s: %w", p.Name, s.Name, err)
		}
		results = append(results, r)
		say(r)
	}
	return results, nil
}

// onDisks runs a scenario on an ensemble with disks that can hang.
func onDisks(p servers.Program, dir string, s Scenario) (r Result, err error) {
	r = Result{Scenario: s.Name, Program: p.Name}
	var disks []*disk
	defer func() {
		for _, d := range disks {
			err = errors.Join(err, d.Unmount())
		}
	}()
	for i := range size {
		at := filepath.Join(dir, fmt.Sprint("server", i+1), "data")
		if err := os.MkdirAll(at, 0o700); err != nil {
			return r, err
		}
		d, err := mountDisk(at)
		if err != nil {
			r.Skipped = err.Error()
			return r, nil
		}
		disks = append(disks, d)
	}
	e, err := start(p, dir)
	if err != nil {
		return r, err
	}
	e.disks = disks
	defer e.Kill()
	return s.measure(e)
}
