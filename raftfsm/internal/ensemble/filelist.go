package ensemble

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tree"
)

// The list of servers in a configuration file, and the membership.
//
// The ensemble forms from the list, and a server finds the others through it. After that
// the membership is replicated state. If the list and the membership differ, each server
// logs the reconfig that would make the membership match its file. In addition:
//
//   - Without reconfigEnabled the files determine the membership, as in ZooKeeper, where
//     an operator grows an ensemble by restarting every server with another list. The
//     leader changes the membership when a majority of the old voters and a majority of
//     the new voters run with the new list, and no remaining server runs with another.
//   - A server may move. If a server starts at another address under its own ServerID,
//     which its disk proves, the others follow it there, and its line in the membership
//     changes, unless a client's reconfig has named that line. A confirmed line stays
//     until another reconfig. The same applies to the client address, because the
//     server listens at the address in its own file.

// files compares the list in this server's configuration file with the membership.
type files struct {
	*base

	// Guarded by base.mu.
	written       *membership.List // list written to the configuration file since the start; nil: Config.Members
	mismatch      string           // the reconfig that would make the membership match the file,
	told          string           // as last logged for the operator
	mismatchSince time.Time
}

// fileList returns the list of servers in this server's configuration file.
func (f *files) fileList() *membership.List {
	f.mu.Lock()
	written := f.written
	f.mu.Unlock()
	if written != nil {
		return written
	}
	return membership.New(f.env.Config.Members)
}

// FileWritten tells the ensemble which list the configuration file has now.
func (f *files) FileWritten(m *membership.List) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = m
}

// compareFile records how this server's configuration file and the membership differ,
// and logs a change.
func (f *files) compareFile(m *membership.List) {
	file := f.fileList()
	line := ""
	if !m.Equal(file) {
		line = m.ReconfigLine(file, f.env.Config.ClientPort)
	}
	f.mu.Lock()
	if line != f.mismatch {
		f.mismatch, f.mismatchSince = line, time.Now()
	}
	news := line != f.told && time.Since(f.mismatchSince) >= tellAfter
	if news {
		f.told = line
	}
	f.mu.Unlock()
	switch {
	case !news:
	case line == "":
		f.log.Info("the configuration file lists the members of the ensemble")
	default:
		rule := "the ensemble's membership takes precedence: change it with reconfig, or correct the file"
		if f.env.Config.Policy&tree.ReconfigEnabled == 0 {
			rule = "the file takes effect once a majority of the servers runs with it; or correct it, or allow reconfig with reconfigEnabled=true"
		}
		f.log.Warn("the configuration file does not list the members of the ensemble: "+rule,
			"run", line, "ensemble", string(m.Text()), "file", string(file.Text()))
	}
}

// FileDiffers returns the reconfig that would make the membership match the configuration
// file, "" for none.
func (f *files) FileDiffers() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mismatch
}

// followFiles changes the membership according to the servers' reports: it updates the
// addresses of servers that moved and, if reconfig is disabled, follows the files. Only
// the leader's reconcile loop calls it.
func (c *changes) followFiles(l *leading, now *membership.List) {
	if c.reconfigs.current() != nil {
		return
	}
	if moved := c.moved(now); moved != nil {
		c.proposeMembership(l, now, moved)
		return
	}
	file := c.files.fileList()
	if c.env.Config.Policy&tree.ReconfigEnabled != 0 || now.Equal(file) {
		return
	}
	if c.places.askFiles(l); !c.agreed(now, file) {
		return
	}
	if _, ok := c.planFor(file, c.hear(l)).Plan(); !ok || !c.reconfigs.begin(file) {
		return
	}
	c.log.Info("the configuration files list other servers: changing the membership", "from", string(now.Text()), "to", string(file.Text()))
	c.wg.Go(func() {
		a := c.pursue(c.ctx, l, file)
		done := a.Code == proto.Ok && !a.Retry
		if done {
			c.proposeMembership(l, now, file)
		}
		c.reconfigs.end(done)
	})
}

// moved returns the membership with the new addresses of servers that moved. An address
// counts if the server itself reports it and, except for the client address, Raft uses it.
// moved returns nil if no server has moved.
func (c *changes) moved(now *membership.List) *membership.List {
	next := &membership.List{Members: slices.Clone(now.Members)}
	changed := false
	for _, s := range c.env.RaftNow().GetConfiguration().Configuration().Servers {
		m := next.Member(membership.ServerOf(s.ID))
		list := c.places.ListOf(membership.ServerOf(s.ID))
		if m == nil || m.ByReconfig() || list == nil || list.Member(m.ID) == nil {
			continue
		}
		line := *list.Member(m.ID)
		if line.ClientAddr == "" && m.ClientAddr != "" {
			line.ClientAddr = m.ClientAddr
			line.ConfigNodeTxt += ";" + m.ClientAddr
		}
		if line.Observer != m.Observer { // a server can't change its own role
			line.Observer, line.ConfigNodeTxt = m.Observer, ""
		}
		if line.ClientAddr != "" && !membership.SameAddr(line.ClientAddr, m.ClientAddr) && c.tellsNamed() {
			*m, changed = m.WithClient(line.ClientAddr), true
		}
		host, _, _ := net.SplitHostPort(line.QuorumAddr)
		if line.QuorumAddr == string(s.Address) && !membership.Wildcard(host) && !m.Same(&line) {
			*m, changed = line, true
		}
	}
	if !changed {
		return nil
	}
	return next
}

// tellsNamed reports whether the state distinguishes the lines that a reconfig has set
// from the lines of configuration files.
func (c *changes) tellsNamed() bool {
	now, _ := c.env.Machine.Levels()
	return now >= membership.NamedLevel
}

// agreed reports whether enough servers run with a list for it to become the membership.
func (c *changes) agreed(now, file *membership.List) bool {
	runs := func(list *membership.List) bool { // a majority of the list's voters
		n := 0
		for _, m := range list.Members {
			if l := c.places.ListOf(m.ID); !m.Observer && l != nil && l.Equal(file) {
				n++
			}
		}
		return n > list.Voters()/2
	}
	for _, m := range file.Members {
		if l := c.places.ListOf(m.ID); l != nil && now.Member(m.ID) != nil && !l.Equal(file) {
			return false // not restarted yet
		}
	}
	return runs(now) && runs(file)
}

const (
	// filesEvery is the interval at which a leader asks for the others' files if its own
	// file differs from the membership.
	filesEvery = time.Second
	// tellAfter is the time that the file and the membership must differ before the
	// server logs it. Updating the file after a change is faster than that.
	tellAfter = time.Second
	// filesFresh is the validity of an answer.
	filesFresh = 5 * time.Second
	// proposalFresh is the time after which a leader proposes a change of the membership
	// again if it hasn't been applied.
	proposalFresh = 5 * time.Second
)

// announced is the list that a server last reported from its file.
type announced struct {
	list *membership.List
	at   time.Time
}

// noteList remembers the list in the file of another server that belongs to this ensemble
// or is to join it.
func (j *joins) noteList(p *bootstrap.Probe) {
	list, err := membership.Parse([]byte(p.List))
	if err != nil || list.Member(p.ID) == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.files == nil {
		j.files = make(map[uint64]announced)
	}
	j.files[p.ID] = announced{list, time.Now()}
}

// ListOf returns the list with which a server was started, or nil if it hasn't reported
// its list recently.
func (p *places) ListOf(server uint64) *membership.List {
	if server == p.self.ID {
		return membership.New(p.env.Config.Members)
	}
	p.joins.mu.Lock()
	defer p.joins.mu.Unlock()
	if a := p.joins.files[server]; time.Since(a.at) < filesFresh {
		return a.list
	}
	return nil
}

// askFiles asks the servers in Raft's configuration for their lists.
func (p *places) askFiles(l *leading) {
	if time.Since(l.askedFiles) < filesEvery {
		return
	}
	l.askedFiles = time.Now()
	var wg sync.WaitGroup
	for _, s := range p.env.RaftNow().GetConfiguration().Configuration().Servers {
		if s.ID != p.env.Identity.RaftID {
			wg.Go(func() { p.AskServer(s) })
		}
	}
	wg.Wait()
}

// AskServer probes a server in Raft's configuration and remembers its list. It returns
// nil if the server doesn't answer.
func (p *places) AskServer(s raft.Server) *bootstrap.Probe {
	ctx, cancel := context.WithTimeout(p.ctx, ProbeTimeout)
	defer cancel()
	addrs := quorum.Addresses(string(s.Address), p.Addresses(s.ID))
	for i, addr := range addrs {
		part, done := quorum.Share(ctx, len(addrs)-i)
		q, theirs, err := p.formation.Probe(part, addr, string(s.ID))
		if done(); err == nil && theirs.ServerID == string(s.ID) {
			p.joins.noteList(q)
			return q
		}
	}
	return nil
}

// proposeMembership proposes to replace the membership now with next.
func (c *changes) proposeMembership(l *leading, now, next *membership.List) {
	c.mu.Lock()
	again := l.changing == string(now.Raw) && time.Since(l.changingAt) < proposalFresh
	if !again {
		l.changing, l.changingAt = string(now.Raw), time.Now()
	}
	c.mu.Unlock()
	if again || c.leadNow() != l {
		return
	}
	next.Version = 0 // set when the command is applied
	body := proto.AppendBuffer(proto.AppendBuffer(nil, now.Raw), next.State())
	c.env.ProposeOwn(&command.Command{Kind: command.KindMembership, Body: body})
}
