package control

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// match selects requests, as zktest.Match does.
type match struct {
	Op      opName    `json:"op,omitempty"`
	Path    string    `json:"path,omitempty"`
	Session sessionID `json:"session,omitempty"`
}

func (m match) zktest(nth int) zktest.Match {
	return zktest.Match{Op: proto.Op(m.Op), Path: m.Path, Session: int64(m.Session), Nth: nth}
}

// spec is the JSON form of a requested fault.
type spec struct {
	Action string `json:"action"`
	match
	Nth   int      `json:"nth,omitempty"`
	Code  codeName `json:"code,omitempty"`
	Delay duration `json:"delay,omitempty"`
}

// fault is the JSON form of a planned fault.
type fault struct {
	ID string `json:"id"`
	spec
	Server   int  `json:"server"`
	Happened bool `json:"happened"`

	order int
	it    *zktest.Fault
}

func (f fault) now() fault {
	f.Happened = f.it.Happened()
	return f
}

func actions() []string { return []string{"fail", "failAll", "delay", "loseReply", "lose"} }

func (s *spec) fails() bool { return s.Action == "fail" || s.Action == "failAll" }

// check returns an error if the fault is invalid.
func (s *spec) check() error {
	switch {
	case s.Nth < 0:
		return bad("nth %d: want 1 for the next matching request, 2 for the one after it …", s.Nth)
	case !slices.Contains(actions(), s.Action):
		return bad("unknown action %q: want one of %s", s.Action, strings.Join(actions(), ", "))
	case s.fails() && s.Code == 0:
		return bad(`code is missing: which error, such as "NoAuth"`)
	case s.Action == "delay" && s.Delay == 0:
		return bad(`delay is missing: how long, such as "2s"`)
	case !s.fails() && s.Code != 0:
		return bad("code is for the actions fail and failAll, not %s", s.Action)
	case s.Action != "delay" && s.Delay != 0:
		return bad("delay is for the action delay, not %s", s.Action)
	}
	return nil
}

// plan schedules the fault on a server.
func (s *spec) plan(on *zktest.Server) *zktest.Fault {
	m := s.zktest(s.Nth)
	switch s.Action {
	case "fail":
		return on.FailNext(m, proto.Code(s.Code))
	case "failAll":
		return on.FailAll(m, proto.Code(s.Code))
	case "delay":
		return on.DelayNext(m, time.Duration(s.Delay))
	case "loseReply":
		return on.LoseReply(m)
	}
	return on.LoseNext(m)
}

func postFault(c *call) (any, error) {
	var in spec
	if err := c.body(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	on, err := c.faulty(in.Session)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next()
	f := fault{ID: id, spec: in, Server: on.ID(), order: c.last, it: in.plan(on)}
	c.faults[f.ID] = f
	return f.now(), nil
}

// faulty returns the server that should inject the fault: the chosen one, the one that the
// session is connected to, or the only one.
func (c *call) faulty(id sessionID) (*zktest.Server, error) {
	if s, err := c.chosen(); s != nil || err != nil {
		return s, err
	}
	if c.cluster == nil {
		return c.servers[0], nil
	}
	if id == 0 {
		return nil, bad("which server? Give the parameter server, or the session")
	}
	list, err := c.sessions()
	for _, s := range list {
		if err == nil && s.ID == id && s.Connected {
			return c.servers[s.Server-1], nil
		}
	}
	if err == nil {
		err = missing("session %v is not connected to any server", id)
	}
	return nil, err
}

// fault returns the fault that the URL path names.
func (c *call) fault(id string) (fault, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.faults[id]
	if !ok {
		return f, missing("there is no fault %q", id)
	}
	return f.now(), nil
}

func getFault(c *call) (any, error) { return c.fault(c.r.PathValue("id")) }

// listFaults returns all faults in the order in which they were planned.
func (c *call) listFaults() []fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []fault{}
	for _, f := range c.faults {
		list = append(list, f.now())
	}
	slices.SortFunc(list, func(a, b fault) int { return cmp.Compare(a.order, b.order) })
	return list
}

func getFaults(c *call) (any, error) { return map[string]any{"faults": c.listFaults()}, nil }

// cancel cancels a fault and forgets it.
func (c *call) cancel(f fault) {
	f.it.Cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.faults, f.ID)
}

func deleteFault(c *call) (any, error) {
	f, err := c.fault(c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c.cancel(f)
	return none{}, nil
}

func deleteFaults(c *call) (any, error) {
	for _, f := range c.listFaults() {
		c.cancel(f)
	}
	return none{}, nil
}
