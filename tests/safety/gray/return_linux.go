package gray

import (
	"fmt"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
)

const (
	// serves is how soon a server must serve after its start.
	serves = 2 * time.Second
	// reached is how soon a server must serve after the network has healed.
	reached = 5 * time.Second
)

// These are the ways in which a server leaves.
const (
	killed = "killed"
	cutOff = "cut off"
)

// awayFor and cutFor return for how long a server is gone.
func awayFor() []time.Duration { return seconds(2, 22, 25, 60) }
func cutFor() []time.Duration  { return seconds(25, 60, 120) }

func returnName(leader bool, how string, d time.Duration) string {
	who := "a follower"
	if leader {
		who = "the leader"
	}
	return fmt.Sprintf("%s %s for %.0f s", who, how, d.Seconds())
}

// away kills a server, starts it again after a while and measures the time until it serves; the
// other servers keep writing.
func (b *bench) away(durations []time.Duration) error {
	return b.leave(killed, durations, serves, func(e *ensemble, s *server, d time.Duration) (time.Time, error) {
		s.kill()
		stay(d)
		return time.Now(), s.launch()
	})
}

// silence cuts a server off from the others, without a reset, and heals the
// network after a while.
func (b *bench) silence(durations []time.Duration) error {
	return b.leave(cutOff, durations, reached, func(e *ensemble, s *server, d time.Duration) (time.Time, error) {
		e.isolate(s)
		stay(d)
		e.net.Heal()
		return time.Now(), nil
	})
}

// isolate cuts servers off from all others.
func (e *ensemble) isolate(few ...*server) {
	cut := map[*server]bool{}
	for _, s := range few {
		cut[s] = true
	}
	for _, s := range few {
		for _, o := range e.servers {
			if !cut[o] {
				e.net.Between(s.name(), o.name(), (*netns.Link).Cut)
			}
		}
	}
}

func stay(d time.Duration) { <-time.After(d) }

// leave makes the leader and then a follower leave, for each duration.
func (b *bench) leave(how string, durations []time.Duration, limit time.Duration, f func(*ensemble, *server, time.Duration) (time.Time, error)) error {
	for _, leads := range []bool{true, false} {
		for _, d := range durations {
			name := returnName(leads, how, d)
			if !b.chosen(returnTable, name) {
				continue
			}
			if err := b.comeBack(name, leads, limit, func(e *ensemble, s *server) (time.Time, error) { return f(e, s, d) }); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func (b *bench) comeBack(name string, leads bool, limit time.Duration, f func(*ensemble, *server) (time.Time, error)) error {
	e, err := b.start(Settings{})
	if err != nil {
		return err
	}
	defer e.close()
	p, err := e.watch(load{})
	if err != nil {
		return err
	}
	defer p.close()
	s, followers, err := e.leader()
	if err != nil {
		return err
	}
	if !leads {
		s = followers[0]
	}
	began, err := f(e, s)
	if err != nil {
		return err
	}
	served := Value{What: "serves after", Limit: limit}
	if eventually("it serves", b.givenUp, func() bool { return s.status().Mode != "" }) != nil {
		served.Kind = AtLeast
	}
	served.Took = time.Since(began)
	// These are writes and sessions through the server, since its start.
	n := p.observe(began, 0, b.givenUp)
	i := s.id - 1
	b.report(Row{Table: returnTable, Scenario: name, Program: b.program.Name, Trials: 1, Wrong: p.faults(),
		Values: []Value{served, {What: "first write through it", Took: n.writes[i]}, {What: "first new session", Took: n.sessions[i]}}})
	return nil
}
