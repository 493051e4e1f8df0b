package gray

import (
	"fmt"
	"time"
)

// leads is how soon another server that can replicate must lead.
const leads = 10 * time.Second

// largeCase says which packets are lost, under which load.
type largeCase struct {
	name string
	size int
	load load
	tls  bool // between the servers
}

func largeCases() []largeCase {
	busy := load{size: 1000, pause: time.Millisecond, clock: time.Millisecond, ticking: 1100}
	return []largeCase{
		{"of 200 bytes and more", 200, load{}, false},
		{"of 200 bytes and more; values of 3 kB", 200, load{size: 3000}, false},
		{"of 1400 bytes and more; values of 1 kB, many at a time", 1400, busy, false},
		{"of 1400 bytes and more; values of 3 kB", 1400, load{size: 3000}, false},
		{"of 200 bytes and more; values of 3 kB; sslQuorum", 200, load{size: 3000}, true},
	}
}

// large runs the scenarios that lose large packets from the leader to the other
// servers. Some requests through the old leader can never work, so the limit is
// about writes through any server.
func (b *bench) large() error {
	for _, c := range largeCases() {
		if !b.chosen(largeTable, c.name) {
			continue
		}
		if err := b.blackHole(c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) blackHole(c largeCase) error {
	e, err := b.start(Settings{TLS: c.tls})
	if err != nil {
		return err
	}
	defer e.close()
	p, err := e.watch(c.load)
	if err != nil {
		return err
	}
	defer p.close()
	leader, followers, err := e.leader()
	if err != nil {
		return err
	}
	lasting := 25 * time.Second
	if b.plan.Short {
		lasting = leads + 5*time.Second
	}
	epoch, from := e.epoch(), time.Now()
	for _, f := range followers {
		e.net.Link(leader.name(), f.name()).DropLarge(c.size)
	}
	n := p.observe(from, lasting, lasting)
	count := p.acknowledged(from)
	values := n.values(lasting, 0)
	values[0].Limit = leads
	values = append(values[:1], Value{What: "writes acknowledged", Kind: Number, Count: count}, elections(e, epoch))
	healed := time.Now()
	e.net.Heal()
	back := p.observe(healed, 0, b.givenUp)
	values = append(values, Value{What: "no write at a server after healing", Took: longest(back.writes), Limit: resumes})
	b.report(Row{Table: largeTable, Scenario: c.name, Program: b.program.Name, Trials: 1, Values: values, Wrong: p.faults()})
	return nil
}

// acknowledged counts the writes acknowledged after a time.
func (p *probes) acknowledged(from time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range append(p.writes, p.ticks) {
		for _, t := range at {
			if t.After(from) {
				n++
			}
		}
	}
	return n
}
