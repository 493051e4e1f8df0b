package control

import (
	"strconv"

	"github.com/zkgo/zkgo/server/zktest"
)

// serverState is a server as it is shown.
type serverState struct {
	ID       int    `json:"id"`
	Address  string `json:"address"`
	Running  bool   `json:"running"`
	Paused   bool   `json:"paused"`
	Serving  bool   `json:"serving"`
	ReadOnly bool   `json:"readOnly"`
	Mode     string `json:"mode"` // as srvr says it
	Zxid     int64  `json:"zxid"`
}

func (t *TestServer) state(s *zktest.Server) serverState {
	st := s.Server().Status().Server()
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

// ensemble is the cluster and the member of it that the path names.
func (c *call) ensemble() (*zktest.Cluster, *zktest.Server, error) {
	s, err := c.member(c.r.PathValue("id"))
	if err == nil && c.cluster == nil {
		err = onlyClusters()
	}
	return c.cluster, s, err
}

func onlyClusters() error {
	return &refusal{kind: failed, text: "the test server stands alone: start it with --servers 3"}
}

func postKill(c *call) (any, error) {
	cl, s, err := c.ensemble()
	if err != nil {
		return nil, err
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	cl.Kill(s.ID())
	return none{}, nil
}

func postStart(c *call) (any, error) {
	cl, s, err := c.ensemble()
	if err != nil {
		return nil, err
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	cl.Start(s.ID())
	return none{}, nil
}

func postRestart(c *call) (any, error) {
	if _, err := postStart(c); err != nil {
		return nil, err
	}
	c.cluster.WaitServing()
	return none{}, nil
}

func postPause(c *call) (any, error) {
	cl, s, err := c.ensemble()
	if err != nil {
		return nil, err
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	cl.Pause(s.ID())
	return none{}, nil
}

func postUnpause(c *call) (any, error) {
	cl, s, err := c.ensemble()
	if err != nil {
		return nil, err
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	cl.Resume(s.ID())
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

// getLeader waits until there is one.
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
		return t.servers[0].Running()
	}
	return t.cluster.Serving()
}
