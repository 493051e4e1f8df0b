package zktest

import (
	"slices"
	"time"

	"github.com/zkgo/zkgo/tree"
)

// links sets the state of the network between the servers according to the partition
// and the pauses.
func (c *Cluster) links() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.servers {
		for j := range c.servers {
			if i == j {
				continue
			}
			if c.group[i] != c.group[j] || c.paused[i] || c.paused[j] {
				c.net.Hold(host(i+1), host(j+1))
			} else {
				c.net.Heal(host(i+1), host(j+1))
				c.net.Delay(host(i+1), host(j+1), c.slow[link{i + 1, j + 1}])
			}
		}
	}
}

// Partition splits the network between the servers. The servers of one list reach only each
// other; servers on no list form a separate group. Clients still reach all servers. A new
// partition replaces the previous one.
func (c *Cluster) Partition(groups ...[]int) {
	c.t.Helper()
	c.inProcess(needsFaults)
	sides := make([]int, len(c.servers))
	for i, ids := range groups {
		for _, id := range ids {
			c.Server(id)
			sides[id-1] = i + 1
		}
	}
	c.split(sides)
	c.logs.printf("the network is cut: %v reach only one another, like the other servers", groups)
	c.links()
}

// Heal ends a partition. Messages that were in flight arrive now.
func (c *Cluster) Heal() {
	c.t.Helper()
	c.inProcess(needsFaults)
	c.split(make([]int, len(c.servers)))
	c.logs.printf("the network is connected again")
	c.links()
}

// split records which side each server is on.
func (c *Cluster) split(sides []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group = sides
}

// together reports whether a and b are on the same side of the partition.
func (c *Cluster) together(a, b *Server) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.group[a.id-1] == c.group[b.id-1]
}

func (c *Cluster) setPaused(id int, to bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused[id-1] = to
}

func (c *Cluster) isPaused(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused[i]
}

// Pause calls [Server.Pause] on a member.
func (c *Cluster) Pause(id int) {
	c.t.Helper()
	c.Server(id).Pause()
}

// Resume ends Pause.
func (c *Cluster) Resume(id int) {
	c.t.Helper()
	c.Server(id).Resume()
}

// Kill calls [Server.Kill] on a member.
func (c *Cluster) Kill(id int) {
	c.t.Helper()
	c.Server(id).Kill()
}

// Restart calls [Server.Restart] on a member. It waits until that member serves and
// has a vote.
func (c *Cluster) Restart(id int) {
	c.t.Helper()
	c.Server(id).Restart()
}

// Start is Restart without the wait. Use it for a server that can't serve yet.
func (c *Cluster) Start(id int) {
	c.t.Helper()
	c.Server(id).Start()
}

// Advance moves the clock of all servers, as Server.Advance does. Clients of servers
// that follow the leader count as connected; clients of other servers count as
// silent.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	c.inProcess(needsClock)
	c.logs.printf("the clock moves by %v", d)
	var lead *Server
	c.wait("a leader that can commit", func() bool {
		lead = c.leads()
		return lead != nil && barrier(lead.Server()) == nil
	})
	lead.Server().Node().Kick() // see Server.advance
	alive := func() []int64 { return c.connected(lead) }
	due := c.overdue(lead, d, alive())
	if !c.opts.silent {
		lead.gate.alive.Store(&alive)
	}
	c.clock.advance(d)
	lead.Server().Node().Kick()
	err := barrier(lead.Server())
	lead.gate.alive.Store(nil)
	if err != nil { // another server leads and hasn't expired the session
		lead = c.Leader()
		lead.Server().Node().Kick()
	}
	for id, gen := range due {
		c.end(id, gen)
	}
	c.settle()
}

// connected returns the sessions of the clients that lead can hear from.
func (c *Cluster) connected(lead *Server) []int64 {
	var ids []int64
	for _, s := range c.servers {
		if c.follows(s, lead) {
			ids = append(ids, s.gate.sessions(false)...)
		}
	}
	return ids
}

// overdue returns the sessions that must end when the clock moves by d, with their generations.
// If the leader is out of touch with the followers at that moment, it extends all sessions,
// so we have to know which ones should end.
func (c *Cluster) overdue(lead *Server, d time.Duration, alive []int64) map[int64]uint64 {
	gens := make(map[int64]uint64)
	if c.opts.silent {
		return gens
	}
	then := c.clock.now().Add(d)
	node := lead.Server().Node()
	for at, ids := range node.Deadlines() {
		for _, id := range ids {
			if !at.After(then) && !slices.Contains(alive, id) {
				gens[id] = lead.generation(id)
			}
		}
	}
	return gens
}

// generation returns a session's generation, or 0 if the session doesn't exist.
func (s *Server) generation(id int64) (gen uint64) {
	s.read(func(*tree.Tree) {
		row, _ := s.Server().Node().Sessions().Get(id)
		gen = row.Gen
	})
	return gen
}

// end ends a session unless it has already ended or its client has reconnected.
func (c *Cluster) end(id int64, gen uint64) {
	c.t.Helper()
	c.wait("the end of a session", func() bool {
		lead := c.leads()
		if lead == nil {
			return false
		}
		if lead.generation(id) != gen || gen == 0 {
			return true
		}
		_, err := endSession(lead.Server(), id, gen)
		return err == nil
	})
}

// settle waits until all followers have everything that has been committed.
func (c *Cluster) settle() {
	c.t.Helper()
	c.wait("all servers have the same data", func() bool {
		lead := c.leads()
		if lead == nil {
			return false
		}
		for _, s := range c.servers {
			if c.follows(s, lead) && barrier(s.Server()) != nil {
				return false
			}
		}
		return true
	})
}
