package gray

import (
	"fmt"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
)

// staleCase is what delays committed entries on their way to one follower.
type staleCase struct {
	name    string
	tick    int // milliseconds
	timeout time.Duration
	harm    func(*netns.Link)
}

func staleCases() []staleCase {
	return []staleCase{
		{"link of 400 kbit/s, T = 10 s, tickTime 1000", 1000, 10 * time.Second, rate(400_000)},
		{"link of 700 kbit/s, T = 10 s, tickTime 1000", 1000, 10 * time.Second, rate(700_000)},
		{"link of 400 kbit/s, T = 30 s, tickTime 2000", 2000, 30 * time.Second, rate(400_000)},
		{"packets of 200 bytes and more are lost, T = 10 s, tickTime 1000", 1000, 10 * time.Second, func(l *netns.Link) { l.DropLarge(200) }},
	}
}

// stale runs the scenarios in which one follower receives committed entries too
// slowly. A plain read must never be older than the bound.
func (b *bench) stale() error {
	for _, c := range staleCases() {
		if !b.chosen(staleTable, c.name) {
			continue
		}
		if err := b.lag(c.name, c.tick, c.timeout, c.harm); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// rate limits a link, with a queue as short as a router's.
func rate(bits int64) func(*netns.Link) {
	return func(l *netns.Link) { l.Rate(bits, 500*time.Millisecond) }
}

func (b *bench) lag(name string, tick int, timeout time.Duration, harm func(*netns.Link)) error {
	e, err := b.start(Settings{Tick: tick})
	if err != nil {
		return err
	}
	defer e.close()
	// The clock makes about a hundred writes of 1.1 kB per second.
	p, err := e.watch(load{timeout: timeout, pause: 200 * time.Millisecond, clock: 8 * time.Millisecond, ticking: 1100})
	if err != nil {
		return err
	}
	defer p.close()
	leader, followers, err := e.leader()
	if err != nil {
		return err
	}
	bound := min(timeout*2/3, syncLimit*time.Duration(tick)*time.Millisecond)
	slow := followers[0]
	epoch, from := e.epoch(), time.Now()
	harm(e.net.Link(leader.name(), slow.name()))
	p.observe(from, 6*bound, 6*bound)
	values := []Value{
		{What: "bound", Took: bound},
		{What: "oldest read", Took: p.oldest(slow.id-1, from), Limit: bound, Strict: true},
		{What: "reads while it lasted", Kind: Number, Count: p.readsAt(slow.id-1, from)},
		elections(e, epoch),
	}
	healed := time.Now()
	e.net.Heal()
	back := p.observe(healed, 0, b.givenUp)
	values = append(values, Value{What: "no write at it after healing", Took: back.writes[slow.id-1], Limit: resumes})
	b.report(Row{Table: staleTable, Scenario: name, Program: b.program.Name, Trials: 1, Values: values, Wrong: p.faults()})
	return nil
}

// readsAt counts the reads on a server since a time.
func (p *probes) readsAt(i int, from time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.reads[i] {
		if r.sent.After(from) {
			n++
		}
	}
	return n
}
