package control

import (
	"strconv"
	"time"

	"github.com/zkgo/zkgo/server/zktest"
)

// serverState is the JSON form of a server.
type serverState struct {
	ID       int    `json:"id"`
	Address  string `json:"address"`
	Running  bool   `json:"running"`
	Paused   bool   `json:"paused"`
	Serving  bool   `json:"serving"`
	ReadOnly bool   `json:"readOnly"`
	Mode     string `json:"mode"` // as in the output of srvr
	Zxid     int64  `json:"zxid"`
}

func (t *TestServer) state(s *zktest.Server) serverState {
	st := s.Server().Status()
	return serverState{
		ID: s.ID(), Address: t.addrs[s.ID()-1], Running: s.Running(), Paused: s.Paused(),
		Serving: s.Running() && st.Serving, ReadOnly: st.ReadOnly, Mode: st.Mode, Zxid: st.Zxid,
	}
}

func getServers(c *call) (any, error) {
	var list []serverState
	for _, s := range c.servers {
		list = append(list, c.state(s))
	}
	return map[string]any{"servers": list}, nil
}

func onlyClusters() error {
	return &refusal{kind: failed, text: "the test server runs only one server: start it with --servers 3"}
}

// onMember returns an endpoint that applies do to the server named in the path, while
// no other call changes the ensemble.
func onMember(do func(c *call, s *zktest.Server)) func(c *call) (any, error) {
	return func(c *call) (any, error) {
		s, err := c.member(c.r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		c.shape.Lock()
		defer c.shape.Unlock()
		do(c, s)
		return none{}, nil
	}
}

func kill(_ *call, s *zktest.Server)    { s.Kill() }
func revive(_ *call, s *zktest.Server)  { s.Start() }
func pause(_ *call, s *zktest.Server)   { s.Pause() }
func unpause(_ *call, s *zktest.Server) { s.Resume() }

func readOnly(c *call, s *zktest.Server) { c.keep(onServer("read-only", s), s.ReadOnly()) }
func writable(c *call, s *zktest.Server) { c.undo(onServer("read-only", s)) }

func fillDisk(c *call, s *zktest.Server)  { c.keep(onServer("disk", s), s.FillDisk()) }
func failFsync(c *call, s *zktest.Server) { c.keep(onServer("disk", s), s.FailFsync()) }
func healDisk(c *call, s *zktest.Server)  { c.undo(onServer("disk", s)) }

// While we wait, we don't block other calls that change the ensemble, because the server
// may need them before it can serve.
func postRestart(c *call) (any, error) {
	if _, err := onMember(revive)(c); err != nil {
		return nil, err
	}
	return none{}, c.await("all servers serve", defaultWait, func() (bool, error) { return c.allServe(), nil })
}

func postSlowLink(c *call) (any, error) {
	var in struct {
		Servers []int    `json:"servers"`
		Delay   duration `json:"delay"`
	}
	if err := c.body(&in); err != nil {
		return nil, err
	}
	switch {
	case c.cluster == nil:
		return nil, onlyClusters()
	case len(in.Servers) != 2 || in.Servers[0] == in.Servers[1]:
		return nil, bad("servers: want two, such as [1, 2]")
	case in.Delay == 0:
		return nil, bad(`delay is missing: how long, such as "100ms"`)
	}
	for _, id := range in.Servers {
		if _, err := c.member(strconv.Itoa(id)); err != nil {
			return nil, err
		}
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	c.keep("links", c.cluster.SlowLink(in.Servers[0], in.Servers[1], time.Duration(in.Delay)))
	return none{}, nil
}

func postFastLinks(c *call) (any, error) {
	c.shape.Lock()
	defer c.shape.Unlock()
	c.undo("links")
	return none{}, nil
}

func postPartition(c *call) (any, error) {
	var in struct {
		Groups [][]int `json:"groups"`
	}
	if err := c.body(&in); err != nil {
		return nil, err
	}
	if c.cluster == nil {
		return nil, onlyClusters()
	}
	if len(in.Groups) == 0 {
		return nil, bad("groups is missing: lists of servers, such as [[1], [2, 3]]")
	}
	seen := make(map[int]bool)
	for _, ids := range in.Groups {
		for _, id := range ids {
			if _, err := c.member(strconv.Itoa(id)); err != nil {
				return nil, err
			}
			if seen[id] {
				return nil, bad("groups: server %d is named twice", id)
			}
			seen[id] = true
		}
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	c.cluster.Partition(in.Groups...)
	return none{}, nil
}

func postHeal(c *call) (any, error) {
	if c.cluster == nil {
		return nil, onlyClusters()
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	c.cluster.Heal()
	return none{}, nil
}

// getLeader waits until there is a leader.
func getLeader(c *call) (any, error) {
	if c.cluster == nil {
		return map[string]int{"leader": 1}, nil
	}
	return map[string]int{"leader": c.cluster.Leader().ID()}, nil
}

func postLeader(c *call) (any, error) {
	if c.cluster == nil {
		return nil, onlyClusters()
	}
	return map[string]int{"leader": c.cluster.ForceLeaderChange().ID()}, nil
}

// allServe reports whether every server that can be part of the ensemble serves.
func (t *TestServer) allServe() bool {
	if t.cluster == nil {
		return t.servers[0].Running() && t.servers[0].Server().Node().Status().Serving
	}
	return t.cluster.Serving()
}
