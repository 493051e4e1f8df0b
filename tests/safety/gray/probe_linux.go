package gray

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/process"
)

const (
	root  = "/gray"
	clock = root + "/clock"
	// openLimit is how long a probe waits for a connection and a session.
	openLimit = 2 * time.Second
	// again is the pause before a probe tries again.
	again = 20 * time.Millisecond
)

// load describes the probes' work.
type load struct {
	timeout time.Duration // of the sessions; 0: 10 s
	pause   time.Duration // between the writes of a writer; 0: 20 ms
	size    int           // of the data that writers write; 0: 16 bytes
	clock   time.Duration // pause between the writes of the clock; 0: no clock
	ticking int           // size of the clock's writes
}

// probes are clients that never leave their server.
type probes struct {
	e    *ensemble
	load load
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	writes   [][]time.Time // acknowledged, by server
	sessions [][]time.Time // opened, by server
	reads    [][]read      // of the clock, by server
	ticks    []time.Time   // when each value of the clock was acknowledged; the first is 0
	wrong    []string
}

// read is a read of the clock.
type read struct {
	sent, came time.Time
	value      int64
}

// watch starts the probes on every server, and returns when each has had a reply.
func (e *ensemble) watch(l load) (*probes, error) {
	if l.timeout == 0 {
		l.timeout = 10 * time.Second
	}
	if l.pause == 0 {
		l.pause = 20 * time.Millisecond
	}
	l.size, l.ticking = max(l.size, 16), max(l.ticking, 8)
	n := len(e.servers)
	p := &probes{e: e, load: l, writes: make([][]time.Time, n), sessions: make([][]time.Time, n), reads: make([][]read, n)}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	leader, _, err := e.leader()
	if err == nil {
		err = p.prepare(ctx, leader)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	for i := range e.servers {
		p.wg.Go(func() { p.write(ctx, i) })
		p.wg.Go(func() { p.open(ctx, i) })
		if l.clock > 0 {
			p.wg.Go(func() { p.read(ctx, i) })
		}
	}
	if l.clock > 0 {
		p.wg.Go(func() { p.tick(ctx, leader) })
	}
	if err := p.settled(time.Now()); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *probes) close() {
	p.stop()
	p.wg.Wait()
}

// connect attaches a session of the probe to a server, or opens a new one.
func (p *probes) connect(ctx context.Context, s *server, id int64, password []byte) (*process.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	conn, err := p.e.clients.Dial(ctx, s.addr())
	if err != nil {
		return nil, err
	}
	return process.Attach(conn, id, password, p.load.timeout, openLimit)
}

// prepare creates the znodes that the probes use.
func (p *probes) prepare(ctx context.Context, leader *server) error {
	c, err := p.connect(ctx, leader, 0, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Limit = patience
	paths := []string{root, clock}
	for i := range p.e.servers {
		paths = append(paths, p.own(i))
	}
	for _, path := range paths {
		if err := c.Create(path, nil, proto.ModePersistent); err != nil && !errors.Is(err, proto.ErrNodeExists) {
			return fmt.Errorf("creating %s: %w", path, err)
		}
	}
	_, err = c.Do(proto.OpSetData, &proto.SetDataRequest{Path: clock, Data: make([]byte, p.load.ticking), Version: -1})
	return err
}

func (p *probes) own(i int) string { return fmt.Sprintf("%s/writer%d", root, i) }

// session keeps a session on one server, and calls work with its connection again
// and again until ctx ends. It gives up a request, as ZooKeeper's clients do,
// after two thirds of the session timeout without a frame.
func (p *probes) session(ctx context.Context, s *server, work func(*process.Client) error) {
	var id int64
	var password []byte
	for ctx.Err() == nil {
		c, err := p.connect(ctx, s, id, password)
		if errors.Is(err, proto.ErrSessionExpired) {
			id, password = 0, nil
		}
		if err != nil {
			pause(ctx, again)
			continue
		}
		id, password, c.Limit = c.Session, c.Password, p.load.timeout*2/3
		stop := context.AfterFunc(ctx, func() { c.Close() })
		for err = nil; err == nil && ctx.Err() == nil; {
			err = work(c)
		}
		stop()
		c.Close()
	}
}

// write writes the probe's own znode, and checks by its version that no
// acknowledged write is lost or executed twice.
func (p *probes) write(ctx context.Context, i int) {
	var version, unknown int32
	known := false
	p.session(ctx, p.e.servers[i], func(c *process.Client) error {
		reply, err := c.Do(proto.OpSetData, &proto.SetDataRequest{Path: p.own(i), Data: make([]byte, p.load.size), Version: -1})
		if err != nil {
			unknown++
			return err
		}
		now := time.Now()
		r := proto.NewReader(reply.Body)
		var resp proto.SetDataResponse
		resp.Decode(&r)
		v := resp.Stat.Version
		p.mu.Lock()
		p.writes[i] = append(p.writes[i], now)
		if known && (v <= version || v > version+unknown+1) {
			p.wrong = append(p.wrong, fmt.Sprintf("%s has version %d after %d and %d writes with an unknown outcome", p.own(i), v, version, unknown))
		}
		p.mu.Unlock()
		version, unknown, known = v, 0, true
		pause(ctx, p.load.pause)
		return nil
	})
}

// open opens and closes sessions.
func (p *probes) open(ctx context.Context, i int) {
	for ctx.Err() == nil {
		if c, err := p.connect(ctx, p.e.servers[i], 0, nil); err == nil {
			p.mu.Lock()
			p.sessions[i] = append(p.sessions[i], time.Now())
			p.mu.Unlock()
			_, _ = c.Do(proto.OpCloseSession, nil) // otherwise it expires
			c.Close()
		}
		pause(ctx, 5*again)
	}
}

// tick is the clock: it writes one number after another.
func (p *probes) tick(ctx context.Context, leader *server) {
	value := int64(0)
	p.mu.Lock()
	p.ticks = append(p.ticks, time.Now())
	p.mu.Unlock()
	p.session(ctx, leader, func(c *process.Client) error {
		data := binary.BigEndian.AppendUint64(nil, uint64(value+1))
		data = append(data, make([]byte, max(0, p.load.ticking-8))...)
		if _, err := c.Do(proto.OpSetData, &proto.SetDataRequest{Path: clock, Data: data, Version: -1}); err != nil {
			return err
		}
		value++
		p.mu.Lock()
		p.ticks = append(p.ticks, time.Now())
		p.mu.Unlock()
		pause(ctx, p.load.clock)
		return nil
	})
}

// read reads the clock.
func (p *probes) read(ctx context.Context, i int) {
	p.session(ctx, p.e.servers[i], func(c *process.Client) error {
		sent := time.Now()
		data, _, err := c.Get(clock)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.reads[i] = append(p.reads[i], read{sent, time.Now(), int64(binary.BigEndian.Uint64(data))})
		p.mu.Unlock()
		pause(ctx, again)
		return nil
	})
}

// oldest returns the age of the oldest read on a server that was sent after from:
// for how long a later value had been acknowledged when the read was sent. The
// true age is higher, never lower.
func (p *probes) oldest(i int, from time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var age time.Duration
	for _, r := range p.reads[i] {
		if next := r.value + 1; r.sent.After(from) && next < int64(len(p.ticks)) {
			age = max(age, r.sent.Sub(p.ticks[next]))
		}
	}
	return age
}

// gap returns the longest time between two successive instants in a period. The
// beginning and the end of the period count as instants.
func gap(at []time.Time, from, to time.Time) time.Duration {
	var longest time.Duration
	last := from
	i, _ := slices.BinarySearchFunc(at, from, time.Time.Compare)
	for _, t := range at[i:] {
		if t.After(to) {
			break
		}
		longest, last = max(longest, t.Sub(last)), t
	}
	return max(longest, to.Sub(last))
}

// calm reports whether every probe got replies throughout a period, except for
// pauses of up to a second for writes and two seconds for new sessions.
func (p *probes) calm(from, to time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.e.servers {
		if gap(p.writes[i], from, to) > time.Second || gap(p.sessions[i], from, to) > 2*time.Second {
			return false
		}
	}
	return true
}

// quiet is how long service must be uninterrupted to count as restored.
const quiet = 3 * time.Second

// settled waits until service has been uninterrupted for quiet, after since.
func (p *probes) settled(since time.Time) error {
	return eventually("writes and sessions through every server", patience, func() bool {
		now := time.Now()
		return now.Sub(since) > quiet && p.calm(now.Add(-quiet), now)
	})
}

// noticed is what clients noticed of a fault.
type noticed struct {
	anywhere time.Duration   // longest time in which no write was acknowledged
	writes   []time.Duration // the same per server
	sessions []time.Duration // longest time without a new session, per server
}

// observe waits until service is restored, between least and most after from, and
// returns what clients noticed since from.
func (p *probes) observe(from time.Time, least, most time.Duration) noticed {
	_ = eventually("all is well", most-time.Since(from), func() bool {
		now := time.Now()
		return now.Sub(from) > least && p.calm(now.Add(-quiet), now)
	})
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	n := noticed{anywhere: gap(merged(p.writes), from, now)}
	for i := range p.e.servers {
		n.writes = append(n.writes, gap(p.writes[i], from, now))
		n.sessions = append(n.sessions, gap(p.sessions[i], from, now))
	}
	return n
}

func merged(lists [][]time.Time) []time.Time {
	all := slices.Concat(lists...)
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// faults returns the errors that the probes have found.
func (p *probes) faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.wrong)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
