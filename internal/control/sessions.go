package control

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/server/zktest"
)

// session is the JSON form of a session.
type session struct {
	ID        sessionID `json:"id"`
	Timeout   int64     `json:"timeoutMs"`
	Connected bool      `json:"connected"`
	Server    int       `json:"server,omitempty"`  // the server it is connected to
	Address   string    `json:"address,omitempty"` // the client's address
}

// sessions returns the sessions that one server knows, with their connections to any
// server.
func (c *call) sessions() ([]session, error) {
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	list := []session{}
	for _, row := range s.Sessions() {
		list = append(list, session{ID: sessionID(row.ID), Timeout: row.Timeout.Milliseconds()})
	}
	for _, other := range c.servers {
		if !other.Running() {
			continue
		}
		for _, row := range other.Sessions() {
			i := slices.IndexFunc(list, func(s session) bool { return s.ID == sessionID(row.ID) })
			if row.Connected && i >= 0 {
				list[i].Connected, list[i].Server, list[i].Address = true, other.ID(), row.Addr
			}
		}
	}
	return list, nil
}

func getSessions(c *call) (any, error) {
	list, err := c.sessions()
	return map[string]any{"sessions": list}, err
}

// session returns the existing session that the URL path names.
func (c *call) session() (session, error) {
	id, err := parseSession(c.r.PathValue("id"))
	if err != nil {
		return session{}, err
	}
	list, err := c.sessions()
	if err != nil {
		return session{}, err
	}
	for _, s := range list {
		if s.ID == id {
			return s, nil
		}
	}
	return session{}, missing("there is no session %v", id)
}

// connected returns the session that the URL path names and the server that it is
// connected to.
func (c *call) connected() (int64, *zktest.Server, error) {
	s, err := c.session()
	switch {
	case err != nil:
		return 0, nil, err
	case !s.Connected:
		return 0, nil, &refusal{kind: failed, text: "session " + s.ID.String() + " is not connected"}
	}
	return int64(s.ID), c.servers[s.Server-1], nil
}

func postExpire(c *call) (any, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	on, err := c.one()
	if err != nil {
		return nil, err
	}
	on.ExpireSession(int64(s.ID))
	return none{}, nil
}

func postDrop(c *call) (any, error) {
	id, s, err := c.connected()
	if err != nil {
		return nil, err
	}
	s.DropConnection(id)
	return none{}, nil
}

func postHang(c *call) (any, error) {
	id, s, err := c.connected()
	if err != nil {
		return nil, err
	}
	c.keep("hang "+sessionID(id).String(), s.HangConnection(id))
	return none{}, nil
}

func postResume(c *call) (any, error) { return c.undoSession("hang ", "hangs") }

// undoSession reverts a fault on a session's connections.
func (c *call) undoSession(name, state string) (any, error) {
	id, err := parseSession(c.r.PathValue("id"))
	if err == nil && !c.undo(name+id.String()) {
		err = missing("no connection of session %v %s", id, state)
	}
	return none{}, err
}

// slowness is the JSON form of a request to slow connections down.
type slowness struct {
	Delay duration `json:"delay"`
	Rate  int      `json:"bytesPerSecond"` // 0: no limit
}

func (c *call) slowness() (in slowness, err error) {
	if err = c.body(&in); err != nil {
		return in, err
	}
	if in.Rate < 0 || in.Rate == 0 && in.Delay == 0 {
		return in, bad(`missing delay, e.g. "100ms", or bytesPerSecond above 0`)
	}
	return in, nil
}

func postSlow(c *call) (any, error) {
	in, err := c.slowness()
	if err != nil {
		return nil, err
	}
	id, s, err := c.connected()
	if err != nil {
		return nil, err
	}
	c.keep("slow "+sessionID(id).String(), s.SlowConnection(id, time.Duration(in.Delay), in.Rate))
	return none{}, nil
}

func postFast(c *call) (any, error) { return c.undoSession("slow ", "is slow") }

func postSlowAll(c *call) (any, error) {
	in, err := c.slowness()
	if err != nil {
		return nil, err
	}
	list, err := c.some()
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		c.keep(onServer("slow", s), s.SlowConnections(time.Duration(in.Delay), in.Rate))
	}
	return none{}, nil
}

func postFastAll(c *call) (any, error) { return c.undoServers("slow") }

// onServer returns the undo key for a state of a server.
func onServer(state string, s *zktest.Server) string {
	return state + " server " + strconv.Itoa(s.ID())
}

// undoServers reverts a state on the selected servers. A server need not be in that
// state.
func (c *call) undoServers(state string) (any, error) {
	list, err := c.some()
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		c.undo(onServer(state, s))
	}
	return none{}, nil
}

func postDropAll(c *call) (any, error) {
	list, err := c.some()
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Running() {
			s.DropConnections()
		}
	}
	return none{}, nil
}

func postRefuse(c *call) (any, error) {
	list, err := c.some()
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		c.keep(onServer("refuse", s), s.RefuseConnections())
	}
	return none{}, nil
}

func postAccept(c *call) (any, error) { return c.undoServers("refuse") }

func getEphemerals(c *call) (any, error) {
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	owners := make(map[string]sessionID)
	for path, id := range s.Ephemerals() {
		owners[path] = sessionID(id)
	}
	return map[string]any{"ephemerals": owners}, nil
}

// watch is the JSON form of a watch.
type watch struct {
	Path    string           `json:"path"`
	Kind    zktest.WatchKind `json:"kind"`
	Session sessionID        `json:"session"`
	Server  int              `json:"server"`
}

// watches returns the watches of the clients of the selected servers.
func (c *call) watches() ([]watch, error) {
	servers, err := c.some()
	list := []watch{}
	for _, s := range servers {
		if err != nil || !s.Running() {
			continue
		}
		for _, w := range s.Watches() {
			list = append(list, watch{w.Path, w.Kind, sessionID(w.Session), s.ID()})
		}
	}
	slices.SortStableFunc(list, func(a, b watch) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind)) })
	return list, err
}

func getWatches(c *call) (any, error) {
	list, err := c.watches()
	return map[string]any{"watches": list}, err
}

func postAdvance(c *call) (any, error) {
	var in struct {
		Duration *duration `json:"duration"`
	}
	if err := c.body(&in); err != nil {
		return nil, err
	}
	if in.Duration == nil {
		return nil, bad(`duration is missing: a text such as "1.5s", or milliseconds`)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	c.servers[0].Advance(time.Duration(*in.Duration))
	return none{}, nil
}
