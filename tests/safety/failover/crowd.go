package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// holdersPerServer is the number of clients per server that only ping.
const holdersPerServer = 3

// crowd is the clients of one scenario: a writer, a reader and several holders per
// server.
type crowd struct {
	e       *ensemble
	clients []*client
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// Outcome contains the clients' observations in a scenario.
type Outcome struct {
	Writes, Reads  int
	Connections    int            // opened in total
	SessionsLost   int            // expired although their clients sent requests and pings in time
	Starved        int            // expired because their clients got no processor time
	EphemeralsLost int            // missing, or owned by another session
	Errors         map[string]int // by name
	Wrong          []string       // acknowledged writes lost, writes applied twice
}

// Faults lists everything that must never happen, whatever happens to the servers.
func (o Outcome) Faults() []string {
	faults := slices.Clone(o.Wrong)
	if o.SessionsLost > 0 {
		faults = append(faults, fmt.Sprintf("%d sessions lost", o.SessionsLost))
	}
	if o.EphemeralsLost > 0 {
		faults = append(faults, fmt.Sprintf("%d ephemeral znodes lost", o.EphemeralsLost))
	}
	for name, n := range o.Errors {
		if name != connectionLoss {
			faults = append(faults, fmt.Sprintf("%d times %s", n, name))
		}
	}
	slices.Sort(faults)
	return faults
}

// gather starts a crowd and returns once every client has been served.
func gather(e *ensemble) (*crowd, error) {
	if err := e.ask(func(s *session) error {
		_, err := s.do(proto.OpCreate, &proto.CreateRequest{Path: root, ACL: proto.OpenACL()})
		if errors.Is(err, proto.ErrNodeExists) {
			return nil
		}
		return err
	}); err != nil {
		return nil, err
	}
	addrs := make([]string, len(e.Servers))
	for i, s := range e.Servers {
		addrs[i] = s.Addr
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{e: e, cancel: cancel}
	e.crowds++
	for i := range e.Servers {
		tasks := append([]task{write, read}, slices.Repeat([]task{hold}, holdersPerServer)...)
		for k, t := range tasks {
			c.clients = append(c.clients, newClient(t, i, addrs, fmt.Sprintf("%s/%d-%v-%d-%d", root, e.crowds, t, i+1, k)))
		}
	}
	for _, m := range c.clients {
		c.wg.Go(func() { m.run(ctx) })
	}
	if err := c.await(time.Time{}, 1, c.clients); err != nil {
		c.disperse()
		return nil, err
	}
	return c, nil
}

// ask opens a session at the leader and calls f.
func (e *ensemble) ask(f func(*session) error) error {
	return wait.For(wait.Patience, "a session at the leader of "+e.Name, func() (bool, error) {
		s := &session{timeout: sessionTimeout}
		if l := e.Leader(); l == nil || s.connect(l.Addr) != nil {
			return false, nil
		}
		defer s.cut()
		err := f(s)
		_, _ = s.do(proto.OpCloseSession, nil)
		return true, err
	})
}

// await waits until each of the clients has had n replies from t on.
func (c *crowd) await(t time.Time, n int, clients []*client) error {
	for _, m := range clients {
		err := wait.For(wait.Patience, c.e.Name+" serves "+m.name, func() (bool, error) { return len(m.since(t)) >= n, nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// with returns the clients that do a task.
func (c *crowd) with(t task) []*client {
	var found []*client
	for _, m := range c.clients {
		if m.task == t {
			found = append(found, m)
		}
	}
	return found
}

// home sends every client back to its own server and waits until all are connected to it.
func (c *crowd) home() error {
	for _, m := range c.clients {
		m.goHome()
	}
	t := time.Now()
	return c.await(t, 10, append(c.with(write), c.with(read)...))
}

// disperse stops all clients and cuts their connections without closing the sessions.
func (c *crowd) disperse() {
	c.cancel()
	c.wg.Wait()
	for _, m := range c.clients {
		m.session.cut()
	}
}

// finish ends the scenario. It waits for the clients, checks the state left in the
// ensemble and closes the sessions.
func (c *crowd) finish() (Outcome, error) {
	if err := c.e.Await(); err != nil {
		c.disperse()
		return Outcome{}, err
	}
	// We wait until every client is served once more, so that we notice a lost session.
	if err := c.await(time.Now(), 1, c.clients); err != nil {
		c.disperse()
		return Outcome{}, err
	}
	c.cancel()
	c.wg.Wait()
	o := Outcome{Errors: map[string]int{}}
	err := c.e.ask(func(s *session) error {
		for _, m := range c.clients {
			if err := m.tally(s, &o); err != nil {
				return err
			}
		}
		return nil
	})
	for _, m := range c.clients {
		_, _ = m.session.do(proto.OpCloseSession, nil) // the session expires if this fails
		m.session.cut()
	}
	return o, err
}

// tally adds a client's observations to o. The client must have stopped. s is a session
// at the leader.
func (c *client) tally(s *session, o *Outcome) error {
	o.Connections += c.opened
	o.SessionsLost += c.lost
	o.Starved += c.starved
	o.Wrong = append(o.Wrong, c.wrong...)
	for name, n := range c.errs {
		o.Errors[name] += n
	}
	switch c.task {
	case read:
		o.Reads += len(c.answered)
		return nil
	case write:
		o.Writes += len(c.answered)
	}
	stat, err := stat(s, c.name)
	switch {
	case errors.Is(err, proto.ErrNoNode) && c.task == hold:
		o.EphemeralsLost++
	case errors.Is(err, proto.ErrNoNode):
		o.Wrong = append(o.Wrong, c.name+" is gone")
	case err != nil:
		return err
	case c.task == hold && stat.EphemeralOwner != c.session.id:
		o.EphemeralsLost++
	case c.task == write && (stat.Version < c.version || stat.Version > c.version+c.unknown):
		o.Wrong = append(o.Wrong, fmt.Sprintf("%s: version %d in the end, after %d with %d unknown outcomes", c.name, stat.Version, c.version, c.unknown))
	}
	return nil
}

// stat reads a znode's stat.
func stat(s *session, path string) (proto.Stat, error) {
	body, err := s.do(proto.OpExists, &proto.ExistsRequest{Path: path})
	if err != nil {
		return proto.Stat{}, err
	}
	r := proto.NewReader(body)
	var resp proto.ExistsResponse
	resp.Decode(&r)
	return resp.Stat, r.Err()
}
