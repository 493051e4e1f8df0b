package server

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/machine"
	"github.com/zkgo/zkgo/internal/ops/monitor"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/internal/version"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/watch"
)

// defaultTraceMask is what gtmk returns until stmk changes it. Nothing else depends on
// it.
const defaultTraceMask = 306

// Status is a summary of a server.
type Status struct {
	Mode     string // standalone, leader, follower, observer, read-only or looking
	Serving  bool   // the server answers clients
	ReadOnly bool   // it answers only clients that asked for read-only mode
	Reason   string // why it doesn't answer some or all clients
	Leader   int64  // the leader's id, −1 if unknown

	Zxid        int64 // of the newest transaction applied here
	Znodes      int
	Ephemerals  int
	DataSize    int64 // bytes of the paths and the data
	Watches     int   // of clients of this server
	Connections int   // of clients
	Sessions    int   // of the whole ensemble
	Outstanding int64 // requests in flight
	Uptime      time.Duration
}

// Status returns the current status.
func (s *Server) Status() Status {
	p := sourceOf(s).Server()
	return Status{
		Mode: p.Mode, Serving: p.Serving, ReadOnly: p.ReadOnly, Reason: p.Reason, Leader: p.LeaderID,
		Zxid: p.Zxid, Znodes: p.Nodes, Ephemerals: p.Ephemerals, DataSize: p.DataSize, Watches: p.WatchCount,
		Connections: p.Connections, Sessions: p.GlobalSessions, Outstanding: p.Outstanding, Uptime: p.Uptime,
	}
}

// String returns a line for logs: mode, addresses, data directory, and whether the server
// serves.
func (s *Server) String() string {
	c, st := &s.cfg, s.Status()
	at, data := "no port, only Dial", "data in memory"
	if addrs := s.ClientAddrs(); len(addrs) > 0 {
		at = "clients at " + strings.Join(addrs, ", ")
	}
	if !c.Memory {
		data = "data in " + strconv.Quote(c.DataDir)
	}
	state := "serving"
	if st.Reason != "" {
		state = strings.Join(strings.Fields(st.Reason), " ")
	}
	return fmt.Sprintf("zkgo server %d (%s): %s; %s; %s", c.Quorum.ID, st.Mode, at, data, state)
}

// Connection is a client's connection to this server.
type Connection struct {
	Addr    string // the client's
	Secure  bool   // with TLS
	Session int64  // 0: none yet
	Since   time.Time
	Timeout time.Duration // of the session
}

// Connections returns the connections of clients, in the order of their addresses.
func (s *Server) Connections() []Connection {
	var list []Connection
	for _, c := range sourceOf(s).Conns() {
		list = append(list, Connection{Addr: c.Addr, Secure: c.Secure, Session: c.SessionID, Since: c.Established, Timeout: c.Timeout})
	}
	return list
}

// statusSource implements status.Source, the operators' view: each method returns a copy.
// The View makes the metrics.
type statusSource struct {
	s *Server
	monitor.View
}

func sourceOf(s *Server) statusSource {
	v := statusSource{s: s}
	v.View = monitor.View{
		State: v.Server, Stats: &s.stats, Namespaces: &s.spaces, Node: s.node, Watches: s.watches, Memory: s.memory, Tokens: s.tokens,
		Distributed: s.cfg.distributed(), InMemory: s.cfg.Memory, Admin: s.cfg.Admin != nil, EnsembleScheme: s.cfg.ensembleScheme(),
		LargeRequests: s.large.Bounds(), Throttles: s.throttle != nil,
	}
	if s.observers.history != nil {
		v.View.Observers = s.observers.list
	}
	return v
}

// Server implements status.Source.
func (v statusSource) Server() status.Server {
	s := v.s
	p := status.Server{
		Version: version.Text(), ID: s.cfg.Quorum.ID, Outstanding: s.outstanding.Load(),
		Uptime: time.Since(s.epoch), WatchCount: s.watches.Size().Total(),
		LastProposal: -1, MinProposal: -1, MaxProposal: -1,
	}
	s.stats.Describe(&p)
	p.OpenFDs, p.MaxFDs = machine.FileDescriptors()
	v.role(&p)
	if m := s.observers.master; m != nil {
		p.SyncedObservers += m.Observers()
	}
	p.FileDiffers = s.node.FileDiffers()
	p.Level, p.Newest = s.node.Level()
	t := s.tree
	t.RLock()
	p.Zxid, p.Nodes, p.Ephemerals, p.DataSize = t.LastZxid(), t.NodeCount(), t.EphemeralCount(), t.DataSize()
	p.GlobalSessions = s.node.Sessions().Len()
	if n := t.Get("/zookeeper/config"); n != nil {
		p.QuorumSize = bytes.Count(n.Data(), []byte(":participant"))
	}
	t.RUnlock()
	p.Connections, p.LocalSessions = s.clients.count()
	return p
}

// role sets what depends on the server's role in its ensemble.
func (v statusSource) role(p *status.Server) {
	m, _ := v.s.modes.get()
	st := v.s.node.Status()
	p.Serving, p.ReadOnly = m != notServing, m == readOnly
	p.Leads = st.Role == raftfsm.Leader
	p.LeaderID, p.Epoch = -1, st.Epoch
	if st.Role != raftfsm.Looking {
		p.LeaderID = int64(st.Leader)
	}
	p.Mode = modeName(m, st.Role)
	if m != serving {
		p.Reason = v.s.modes.whyNot(m)
	}
	if p.Leads {
		p.LeaderUptime = v.s.modes.inRole()
		v.following(p)
	}
}

// following sets a leader's view of its followers and observers.
func (v statusSource) following(p *status.Server) {
	sizes := v.s.node.ProposalSizes()
	p.LastProposal, p.MinProposal, p.MaxProposal = sizes.Last, sizes.Min, sizes.Max
	for _, l := range v.s.node.Learners() {
		p.Learners++
		switch {
		case l.Synced && l.Observer:
			p.SyncedObservers++
		case l.Synced:
			p.SyncedFollowers++
		}
	}
}

// modeName returns the mode as srvr prints it.
func modeName(m mode, r raftfsm.Role) string {
	if m == readOnly {
		return "read-only"
	}
	switch r {
	case raftfsm.Standalone:
		return "standalone"
	case raftfsm.Leader:
		return "leader"
	case raftfsm.Follower:
		return "follower"
	case raftfsm.Observer:
		return "observer"
	}
	return "looking"
}

// Conns implements status.Source.
func (v statusSource) Conns() []status.Conn {
	list := []status.Conn{}
	v.s.clients.each(func(c *conn) { list = append(list, v.conn(c)) })
	slices.SortFunc(list, func(a, b status.Conn) int { return cmp.Compare(a.Addr, b.Addr) })
	return list
}

// conn returns the status of one connection.
func (v statusSource) conn(c *conn) status.Conn {
	s := v.s
	c.replies.mu.Lock()
	defer c.replies.mu.Unlock()
	timeout := time.Duration(c.session.timeout) * time.Millisecond
	p := status.Conn{
		Addr: c.nc.RemoteAddr().String(), Secure: c.secure, Interest: 1, Queued: int64(c.replies.waiting.Load()),
		SessionID: c.session.id, Established: s.epoch.Add(time.Duration(c.born)), Timeout: timeout,
	}
	c.replies.counters.Describe(&p)
	if c.session.id == 0 {
		timeout = s.cfg.Limits.SessionlessTimeout
	}
	tick := s.cfg.TickTime
	p.Expires = s.epoch.Add(time.Duration(c.session.last.Load()) + timeout).Truncate(tick).Add(tick)
	return p
}

// Sessions implements status.Source.
func (v statusSource) Sessions() status.Sessions {
	p := status.Sessions{Expiry: v.s.node.Deadlines()}
	t := v.s.tree
	t.RLock()
	for row := range v.s.node.Sessions().All {
		p.IDs = append(p.IDs, row.ID)
		p.Timeouts = append(p.Timeouts, time.Duration(row.Timeout)*time.Millisecond)
	}
	p.Ephemerals = t.EphemeralSessions()
	t.RUnlock()
	for _, paths := range p.Ephemerals {
		slices.Sort(paths)
	}
	return p
}

// Watches implements status.Source.
func (v statusSource) Watches() status.WatchSummary {
	n := v.s.watches.Counts()
	return status.WatchSummary{Conns: n.Conns, Paths: n.Paths, Total: n.Data}
}

// watcherSession returns the session of the connection that w belongs to.
func watcherSession(w *watch.Watcher) int64 {
	c, ok := w.Sink().(*conn)
	if !ok {
		return 0
	}
	c.replies.mu.Lock()
	defer c.replies.mu.Unlock()
	return c.session.id
}

// WatchesBySession implements status.Source.
func (v statusSource) WatchesBySession() map[int64][]string {
	m := make(map[int64][]string)
	for w, paths := range v.s.watches.ByWatcher() {
		id := watcherSession(w)
		m[id] = append(m[id], paths...)
	}
	return m
}

// WatchesByPath implements status.Source.
func (v statusSource) WatchesByPath() map[string][]int64 {
	m := make(map[string][]int64)
	for path, watchers := range v.s.watches.ByPath() {
		for _, w := range watchers {
			m[path] = append(m[path], watcherSession(w))
		}
		slices.Sort(m[path])
	}
	return m
}

// TraceMask implements status.Source.
func (v statusSource) TraceMask() uint64 {
	return v.s.traceMask.Load()
}

// SetTraceMask implements status.Source.
func (v statusSource) SetTraceMask(mask uint64) {
	v.s.traceMask.Store(mask)
}

// ResetServer implements status.Source.
func (v statusSource) ResetServer() {
	v.s.stats.Reset()
	v.s.node.ResetNumbers()
	v.s.spaces.Each(func(n *stats.Namespace) {
		n.Reads.Reset()
		n.Writes.Reset()
		n.OverQuota.Store(0)
	})
}

// ResetConns implements status.Source.
func (v statusSource) ResetConns() {
	v.s.clients.each(func(c *conn) {
		c.replies.mu.Lock()
		c.replies.counters.Reset()
		c.replies.mu.Unlock()
	})
}

// Configuration implements status.Source.
func (v statusSource) Configuration() status.Configuration {
	c := &v.s.cfg
	p := status.Configuration{
		ClientPort: listen.PortOf(v.s.ClientAddr()), SecureClientPort: -1, ClientAddress: v.s.ClientAddr(),
		DataDir: c.DataDir, LogDir: c.Log.Dir, TickTime: c.TickTime, MaxClientCnxns: max(c.Limits.MaxClientCnxns, 0),
		MinSessionTimeout: c.MinSessionTimeout, MaxSessionTimeout: c.MaxSessionTimeout,
		ListenBacklog: c.Limits.ListenBacklog, ServerID: c.Quorum.ID, Ensemble: c.distributed(),
		InitLimit: c.Quorum.InitLimit, SyncLimit: c.Quorum.SyncLimit,
	}
	p.DataDirSize, p.LogDirSize = v.Dirs()
	if c.zooCfg != nil {
		p.Text = c.zooCfg.RedactedText()
	}
	if c.ClientAddr == "" {
		p.ClientPort = -1
	}
	if c.SecureAddr != "" {
		addrs := v.s.ClientAddrs()
		p.SecureClientPort = listen.PortOf(addrs[len(addrs)-1])
	}
	if !p.Ensemble {
		if c.zooCfg == nil || !c.zooCfg.HasMyID {
			p.ServerID = 0
		}
		return p
	}
	self := v.s.node.Self()
	p.Observer = self.Observer
	p.QuorumPort, p.ElectionPort = listen.PortOf(self.QuorumAddr), listen.PortOf(self.ElectionAddr)
	t := v.s.tree
	t.RLock()
	defer t.RUnlock()
	if n := t.Get("/zookeeper/config"); n != nil {
		p.Membership = string(n.Data())
	}
	return p
}

// Digests implements status.Source.
func (v statusSource) Digests() []status.Digest {
	return v.s.digests.List()
}

// Environment implements status.Source.
func (statusSource) Environment() []status.Pair { return machine.Environment(version.Text()) }

// Dirs implements status.Source.
func (v statusSource) Dirs() (data, log int64) {
	c := &v.s.cfg
	if c.Memory {
		return 0, 0
	}
	return machine.DirSize(c.DataDir), machine.DirSize(c.Log.Dir)
}
