package gray

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
)

// resumes is how soon writes and new sessions work again through every server
// after connections were forgotten while new ones work: syncLimit, or this.
const resumes = 5 * time.Second

// fault is something that happens to the connections of a healthy ensemble.
type fault struct {
	name   string
	zkgo   bool // only zkgo has such connections
	trials func(t *trial) ([]func() error, error)
}

// trial is an ensemble with a fault.
type trial struct {
	e         *ensemble
	p         *probes
	leader    *server
	followers []*server
}

// once returns the single trial of a fault.
func once(f func(t *trial) ([]netns.Conn, error)) func(t *trial) ([]func() error, error) {
	return func(t *trial) ([]func() error, error) {
		return []func() error{func() error {
			conns, err := f(t)
			if err == nil {
				err = t.forget(conns...)
			}
			return err
		}}, nil
	}
}

// forget makes the network forget connections. There must be at least one.
func (t *trial) forget(conns ...netns.Conn) error {
	if t.e.net.Forget(conns...) == 0 {
		return fmt.Errorf("there was no connection to forget")
	}
	return nil
}

// deadFaults returns every way to forget connections. few leaves out trials.
func deadFaults(few bool) []fault {
	follows := func(kinds ...int) func(t *trial) ([]netns.Conn, error) {
		return func(t *trial) (all []netns.Conn, err error) {
			for _, kind := range kinds {
				all = append(all, t.e.conns(opened(t.followers[0], t.leader, kind))...)
			}
			return all, nil
		}
	}
	return []fault{
		{"a follower's forward stream", true, once(follows(forwardStream))},
		{"a follower's liveness stream", true, once(follows(livenessStream))},
		{"all connections that a follower has opened to the leader", false, once(follows(0))},
		{"all connections that both followers have opened to the leader", false, once(func(t *trial) ([]netns.Conn, error) {
			return append(t.e.conns(opened(t.followers[0], t.leader, 0)), t.e.conns(opened(t.followers[1], t.leader, 0))...), nil
		})},
		{"the leader's connection for entries to a follower", true, once(func(t *trial) ([]netns.Conn, error) {
			return t.e.entries(t.leader, t.followers[0])
		})},
		{"the leader's connections for entries to both followers", true, once(func(t *trial) ([]netns.Conn, error) {
			a, err := t.e.entries(t.leader, t.followers[0])
			if err != nil {
				return nil, err
			}
			b, err := t.e.entries(t.leader, t.followers[1])
			return append(a, b...), err
		})},
		{"any single connection between servers", false, singles(few)},
		{"any two connections between servers", false, pairs(few)},
		{"all connections of a follower", false, once(func(t *trial) ([]netns.Conn, error) { return t.e.of(t.followers[0]), nil })},
		{"all connections of the leader", false, once(func(t *trial) ([]netns.Conn, error) { return t.e.of(t.leader), nil })},
		{"all connections between servers", false, once(func(t *trial) ([]netns.Conn, error) {
			return t.e.conns(func(netns.Conn) bool { return true }), nil
		})},
	}
}

// of returns the connections between a server and the others.
func (e *ensemble) of(s *server) []netns.Conn {
	return e.conns(func(c netns.Conn) bool { return c.From == s.name() || c.To == s.name() })
}

// fewTrials is how many of the singles and pairs a short run does.
const fewTrials = 2

// singles forgets one connection after the other: as many as there are at the
// start, each time the oldest that did not exist when the previous one was
// forgotten.
func singles(few bool) func(t *trial) ([]func() error, error) {
	return func(t *trial) (all []func() error, err error) {
		n := len(t.e.conns(func(netns.Conn) bool { return true }))
		if few {
			n = min(n, fewTrials)
		}
		for i := range n {
			all = append(all, func() error {
				open := t.e.conns(func(netns.Conn) bool { return true })
				if len(open) == 0 {
					return t.forget()
				}
				return t.forget(open[i%len(open)])
			})
		}
		return all, nil
	}
}

// manyPairs is how many of the roughly fifty pairs are tried.
const manyPairs = 10

func pairs(few bool) func(t *trial) ([]func() error, error) {
	return func(t *trial) (all []func() error, err error) {
		n := manyPairs
		if few {
			n = fewTrials
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		for range n {
			all = append(all, func() error {
				open := t.e.conns(func(netns.Conn) bool { return true })
				rnd.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
				return t.forget(open[:min(2, len(open))]...)
			})
		}
		return all, nil
	}
}

// dead runs connection faults, all with one ensemble.
func (b *bench) dead(few bool) error {
	faults := slices.DeleteFunc(deadFaults(few), func(f fault) bool {
		return f.zkgo && b.program.Name != zkgo || !b.chosen(deadTable, f.name)
	})
	if len(faults) == 0 {
		return nil
	}
	t := &trial{}
	defer t.close()
	for _, f := range faults {
		if err := b.suffer(t, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// ready makes a trial's ensemble healthy, or starts a new one if there is none.
func (b *bench) ready(t *trial) (err error) {
	if t.e == nil {
		if t.e, err = b.start(Settings{}); err != nil {
			return err
		}
		if t.p, err = t.e.watch(load{}); err != nil {
			return err
		}
	}
	if err = t.e.await(); err == nil {
		err = t.p.settled(time.Now())
	}
	if err == nil {
		t.leader, t.followers, err = t.e.leader()
	}
	return err
}

// close ends the ensemble, if there is one.
func (t *trial) close() {
	if t.p != nil {
		t.p.close()
	}
	if t.e != nil {
		t.e.close()
	}
	t.e, t.p = nil, nil
}

// suffer runs every trial of one fault. It replaces an ensemble that did not
// recover.
func (b *bench) suffer(t *trial, f fault) error {
	row := Row{Table: deadTable, Scenario: f.name, Program: b.program.Name}
	if err := b.ready(t); err != nil {
		return err
	}
	trials, err := f.trials(t)
	if err != nil {
		return err
	}
	for _, forget := range trials {
		if err := b.ready(t); err != nil {
			return err
		}
		epoch, from := t.e.epoch(), time.Now()
		if err := forget(); err != nil {
			return err
		}
		n := t.p.observe(from, 8*time.Second, b.givenUp)
		one := Row{Trials: 1, Values: append(n.values(b.givenUp, resumes), elections(t.e, epoch)), Wrong: t.p.faults()}
		row.add(one)
		if one.Values[1].Kind == AtLeast || one.Values[2].Kind == AtLeast || len(one.Wrong) > 0 {
			t.close()
		}
	}
	b.report(row)
	return nil
}

// values returns the columns for what clients noticed.
func (n noticed) values(most, limit time.Duration) []Value {
	value := func(what string, d time.Duration) Value {
		v := Value{What: what, Took: d, Limit: limit}
		if d >= most-quiet {
			v.Kind = AtLeast
		}
		return v
	}
	return []Value{
		value("no write anywhere", n.anywhere),
		value("no write at a server", longest(n.writes)),
		value("no new session at a server", longest(n.sessions)),
	}
}

func elections(e *ensemble, epoch int64) Value {
	return Value{What: "elections", Kind: Number, Count: int(max(0, e.epoch()-epoch))}
}

func longest(all []time.Duration) time.Duration {
	var most time.Duration
	for _, d := range all {
		most = max(most, d)
	}
	return most
}
