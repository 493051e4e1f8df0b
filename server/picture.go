package server

import (
	"bytes"
	"cmp"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// defaultTraceMask is what gtmk returns until stmk changes it. Nothing else depends on
// it.
const defaultTraceMask = 306

// Status returns the operators' view of the server.
func (s *Server) Status() status.Source { return picture{s} }

// picture implements status.Source.
type picture struct{ s *Server }

const millisecond = int64(time.Millisecond)

// Server implements status.Source.
func (v picture) Server() status.Server {
	s := v.s
	st := &s.stats
	p := status.Server{
		Version: versionText(), ID: s.cfg.Quorum.ID,
		LatencyMax: st.latencyMax.Load() / millisecond, Received: st.received.Load(), Sent: st.sent.Load(),
		Outstanding: s.outstanding.Load(), AuthFailed: st.authFailed.Load(), Rejected: st.rejected.Load(),
		Uptime: time.Since(s.epoch), WatchCount: s.watches.Size().Total(),
		LastReply: st.lastReply.Load() - 1, MinReply: st.minReply.Load() - 1, MaxReply: st.maxReply.Load() - 1,
		LastProposal: -1, MinProposal: -1, MaxProposal: -1,
	}
	if m := st.latencyMin.Load(); m > 0 {
		p.LatencyMin = (m - 1) / millisecond
	}
	if n := st.latencyN.Load(); n > 0 {
		p.LatencyAvg = float64(st.latencySum.Load()) / float64(n)
	}
	p.OpenFDs, p.MaxFDs = fileDescriptors()
	v.role(&p)
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
func (v picture) role(p *status.Server) {
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
		p.LeaderUptime = v.s.inRole()
		v.following(p)
	}
}

// following sets what a leader knows of its followers and observers.
func (v picture) following(p *status.Server) {
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
func (v picture) Conns() []status.Conn {
	list := []status.Conn{}
	v.s.clients.each(func(c *conn) { list = append(list, v.conn(c)) })
	slices.SortFunc(list, func(a, b status.Conn) int { return cmp.Compare(a.Addr, b.Addr) })
	return list
}

// conn returns the status of one connection.
func (v picture) conn(c *conn) status.Conn {
	s := v.s
	c.replies.mu.Lock()
	defer c.replies.mu.Unlock()
	k := &c.replies.counters
	timeout := time.Duration(c.session.timeout) * time.Millisecond
	p := status.Conn{
		Addr: c.nc.RemoteAddr().String(), Secure: c.secure, Interest: 1,
		Queued: int64(c.replies.waiting.Load()), Received: k.recved, Sent: k.sent,
		SessionID: c.session.id, LastOp: "NA", Established: s.epoch.Add(time.Duration(c.born)), Timeout: timeout,
		LastCxid: -1, LastZxid: k.lastZxid, LastResponse: time.Duration(k.lastResponse),
		LastLatency: k.latencyLast / millisecond, MinLatency: k.latencyMin / millisecond, MaxLatency: k.latencyMax / millisecond,
	}
	if c.session.id == 0 {
		timeout = s.cfg.Limits.SessionlessTimeout
	}
	if k.latencyN > 0 {
		p.AvgLatency = k.latencySum / k.latencyN / millisecond
	}
	if k.last.op != 0 {
		p.LastOp, p.LastCxid = k.last.op.Abbrev(), int64(k.last.xid)
	}
	tick := s.cfg.TickTime
	p.Expires = s.epoch.Add(time.Duration(c.session.last.Load()) + timeout).Truncate(tick).Add(tick)
	return p
}

// Sessions implements status.Source.
func (v picture) Sessions() status.Sessions {
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
func (v picture) Watches() status.WatchSummary {
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
func (v picture) WatchesBySession() map[int64][]string {
	m := make(map[int64][]string)
	for w, paths := range v.s.watches.ByWatcher() {
		id := watcherSession(w)
		m[id] = append(m[id], paths...)
	}
	return m
}

// WatchesByPath implements status.Source.
func (v picture) WatchesByPath() map[string][]int64 {
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
func (v picture) TraceMask() uint64 {
	return v.s.traceMask.Load()
}

// SetTraceMask implements status.Source.
func (v picture) SetTraceMask(mask uint64) {
	v.s.traceMask.Store(mask)
}

// ResetServer implements status.Source.
func (v picture) ResetServer() {
	v.s.stats.reset()
	v.s.node.Numbers().Reset()
	v.s.spaces.each(func(n *namespace) {
		n.reads.Reset()
		n.writes.Reset()
		n.overQuota.Store(0)
	})
}

// ResetConns implements status.Source.
func (v picture) ResetConns() {
	v.s.clients.each(func(c *conn) {
		c.replies.mu.Lock()
		c.replies.counters.reset()
		c.replies.mu.Unlock()
	})
}

// Configuration implements status.Source.
func (v picture) Configuration() status.Configuration {
	c := &v.s.cfg
	p := status.Configuration{
		ClientPort: portOf(v.s.ClientAddr()), SecureClientPort: -1, ClientAddress: v.s.ClientAddr(),
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
		p.SecureClientPort = portOf(addrs[len(addrs)-1])
	}
	if !p.Ensemble {
		if c.zooCfg == nil || !c.zooCfg.HasMyID {
			p.ServerID = 0
		}
		return p
	}
	self := v.s.node.Self()
	p.Observer = self.Observer
	p.QuorumPort, p.ElectionPort = portOf(self.QuorumAddr), portOf(self.ElectionAddr)
	t := v.s.tree
	t.RLock()
	defer t.RUnlock()
	if n := t.Get("/zookeeper/config"); n != nil {
		p.Membership = string(n.Data())
	}
	return p
}

// portOf returns the port of an address, −1 if it has none.
func portOf(addr string) int {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return -1
	}
	return n
}

// digestEvery is how many transactions lie between two entries of the digest log, and
// digestsKept how many entries it holds.
const (
	digestEvery = 128
	digestsKept = 1024
)

// digestLog holds the latest digests, oldest first.
type digestLog struct {
	mu   sync.Mutex
	list []status.Digest
}

// note records the digest after a transaction; the tree is locked.
func (l *digestLog) note(zxid int64, t *tree.Tree) {
	if uint32(zxid)%digestEvery != 0 || uint32(zxid) == 0 { // 0 begins an epoch and is not a client's transaction
		return
	}
	d := status.Digest{Zxid: zxid, Digest: t.Digest()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == digestsKept {
		l.list = append(l.list[:0], l.list[1:]...)
	}
	l.list = append(l.list, d)
}

// Digests implements status.Source.
func (v picture) Digests() []status.Digest {
	l := &v.s.digests
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

var _ status.Source = picture{}
