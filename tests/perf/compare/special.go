package compare

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// restart starts the bed's server again and returns the time until the server answered a request.
func (b *Bed) restart() (time.Duration, error) {
	s := b.Servers[0]
	began := time.Now()
	if err := s.Launch(); err != nil {
		return 0, err
	}
	for s.Running() && b.ctx.Err() == nil && time.Since(began) < process.Patience {
		// A ZooKeeper server that gets a session request before it has loaded its database
		// doesn't recover from that, so we ask first whether it serves.
		if _, err := s.Status(); err != nil {
			pause(time.Millisecond)
			continue
		}
		c, err := process.Connect(s.Addr, 0, nil, 10*time.Second)
		if err == nil {
			_, err = c.Children("/")
			took := time.Since(began)
			c.Close()
			if err == nil {
				return took, nil
			}
		}
		pause(time.Millisecond)
	}
	return 0, errors.New("the server does not serve")
}

func pause(d time.Duration) { <-time.After(d) }

// memory returns the resident memory of the servers' processes, in bytes.
func (b *Bed) memory() (sum float64, err error) {
	for _, s := range b.Servers {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			return 0, err
		}
		sum += kib * 1024
	}
	return sum, nil
}

// processorTime returns the processor time that the servers' processes have used.
func (b *Bed) processorTime() (sum time.Duration, err error) {
	for _, s := range b.Servers {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, f := range fields[11:13] {
			ticks, err := strconv.Atoi(f)
			if err != nil {
				return 0, err
			}
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum, nil
}

// empty starts a server with an empty directory.
func empty(b *Bed) (Values, error) {
	s := b.Servers[0]
	s.Kill()
	if err := os.RemoveAll(s.Dir + "/data"); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.Dir+"/data", 0o700); err != nil {
		return nil, err
	}
	took, err := b.restart()
	if err != nil {
		return nil, err
	}
	pause(b.lasts(time.Second))
	rss, err := b.memory()
	return Values{Start: ms(took), RSS: rss / (1 << 20)}, err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// sessionTimeout is long enough that no client pings during the measurement.
const sessionTimeout = 40 * time.Second

// crowd opens n sessions.
func (b *Bed) crowd(n int) ([]*process.Client, error) {
	all := make([]*process.Client, n)
	var g errgroup.Group
	g.SetLimit(32) // more would overflow ZooKeeper's backlog and have to dial again
	for i := range all {
		g.Go(func() (err error) {
			all[i], err = process.Connect(b.Servers[0].Addr, 0, nil, sessionTimeout)
			return err
		})
	}
	err := g.Wait()
	return all, err
}

func hangUp(all []*process.Client) {
	for _, c := range all {
		if c != nil {
			c.Close()
		}
	}
}

// idle opens sessions that only ping, and measures their cost.
func idle(b *Bed) (Values, error) {
	sessions := b.sessions()
	before, err := b.memory()
	if err != nil {
		return nil, err
	}
	all, err := b.crowd(sessions)
	defer hangUp(all)
	if err != nil {
		return nil, err
	}
	pause(b.lasts(2 * time.Second))
	after, err := b.memory()
	if err != nil {
		return nil, err
	}
	used, err := b.processorTime()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	every := b.lasts(10 * time.Second)
	for i, c := range all { // each session pings once
		pause(time.Until(began.Add(every * time.Duration(i) / time.Duration(sessions))))
		if err := c.Send(process.Request{Op: proto.OpPing}); err != nil {
			return nil, err
		}
	}
	now, err := b.processorTime()
	return Values{PerIdle: (after - before) / float64(sessions) / 1024, Idle: (now - used).Seconds() / time.Since(began).Seconds()}, err
}

// unused measures an ensemble that no client uses.
func unused(b *Bed) (Values, error) {
	pause(b.lasts(5 * time.Second))
	used, err := b.processorTime()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	pause(b.lasts(40 * time.Second))
	now, err := b.processorTime()
	return Values{Idle: (now - used).Seconds() / time.Since(began).Seconds()}, err
}

// reattach restarts a server that has sessions with watches, and waits until all sessions
// and their watches are back.
func reattach(b *Bed) (Values, error) {
	const watches = 10
	all, err := b.crowd(b.sessions())
	defer func() { hangUp(all) }()
	if err != nil {
		return nil, err
	}
	if err := all[0].Create("/watched", nil, proto.ModePersistent); err != nil {
		return nil, err
	}
	set := proto.SetWatches{RelativeZxid: 1 << 62, Exist: []string{}, Child: []string{}}
	for i := range watches {
		path := "/watched/" + strconv.Itoa(i)
		if err := all[0].Create(path, nil, proto.ModePersistent); err != nil {
			return nil, err
		}
		set.Data = append(set.Data, path)
	}
	// A ZooKeeper server that gets a session request before it has loaded its data may never
	// recover, so we retry with another restart.
	for range 3 {
		var took time.Duration
		if took, err = b.allBack(all, &set); err == nil {
			return Values{Reattach: ms(took)}, nil
		}
	}
	return nil, err
}

// backWithin bounds that time.
const backWithin = 15 * time.Second

// allBack restarts the server and returns the time until all clients have their sessions and
// watches again.
func (b *Bed) allBack(all []*process.Client, set *proto.SetWatches) (time.Duration, error) {
	s := b.Servers[0]
	s.Kill()
	hangUp(all)
	began := time.Now()
	if err := s.Launch(); err != nil {
		return 0, err
	}
	late := time.AfterFunc(backWithin, s.Kill) // fails the requests that have had no reply
	defer late.Stop()
	var g errgroup.Group
	g.SetLimit(32)
	for i, old := range all {
		g.Go(func() (err error) {
			all[i], err = b.comeBack(old, set, began.Add(backWithin))
			return err
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

// comeBack reattaches to a session and sets its watches again.
func (b *Bed) comeBack(old *process.Client, set *proto.SetWatches, deadline time.Time) (*process.Client, error) {
	err := errors.New("it is too late")
	for time.Now().Before(deadline) && b.ctx.Err() == nil {
		var c *process.Client
		c, err = process.Connect(b.Servers[0].Addr, old.Session, old.Password, sessionTimeout)
		if err == nil {
			if _, err = c.Do(proto.OpSetWatches, set); err == nil {
				return c, nil
			}
			c.Close()
		}
		pause(2 * time.Millisecond)
	}
	return old, fmt.Errorf("a session does not come back: %w", err)
}

// million measures a server full of znodes, and restarts it.
func million(b *Bed) (Values, error) {
	v, err := b.ask()
	if err != nil {
		return nil, err
	}
	pause(b.lasts(3 * time.Second))
	rss, err := b.memory()
	if err != nil {
		return nil, err
	}
	v[RSS] = rss / (1 << 20)
	b.Servers[0].Kill()
	took, err := b.restart()
	v[Serving] = ms(took)
	return v, err
}
