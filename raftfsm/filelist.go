package raftfsm

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// The list of servers in a configuration file, and the membership.
//
// The list forms the ensemble and says where to find others. From then on the
// membership is replicated state. Where the two differ, every server says so,
// with the reconfig that would make the membership what its file says. And
//
//   - without reconfigEnabled the files have the say, as in ZooKeeper, where
//     restarting every server with another list is how an ensemble grows. The
//     leader changes the membership when a majority of the old voters and of the
//     new ones run with the new list, and none that stays runs with another.
//   - an address belongs to its server: one that comes up elsewhere under its
//     own ServerID, which its disk proves, is followed there, and its line in
//     the membership with it, unless a client's reconfig has named that line.
//     What a client was told stays until another reconfig.

// fileList is the list of servers of this server's configuration file.
func (e *ensemble) fileList() *membership {
	e.mu.Lock()
	written := e.written
	e.mu.Unlock()
	if written != nil {
		return written
	}
	return newMembership(e.n.cfg.Members)
}

// FileText is a text of Membership as this server's configuration file should have it:
// where the file has a wildcard, such as 0.0.0.0, as this server's own host, that stays.
// It says where to listen, which other servers need not know.
func (n *Node) FileText(text []byte) []byte {
	m, err := parseMembership(text)
	i := slices.IndexFunc(n.cfg.Members, func(m Member) bool { return m.ID == n.cfg.ID })
	if err != nil || i < 0 || dialable(n.cfg.Members[i].QuorumAddr) {
		return text
	}
	own := m.member(n.cfg.ID)
	if own == nil || len(own.Alternates) > 0 {
		return text
	}
	host, _, _ := net.SplitHostPort(n.cfg.Members[i].QuorumAddr)
	for _, a := range []*string{&own.QuorumAddr, &own.ElectionAddr} {
		_, port, _ := net.SplitHostPort(*a)
		*a = net.JoinHostPort(host, port)
	}
	own.ConfigNodeTxt = ""
	return m.text()
}

// FileWritten says that the configuration file lists the members of a text of
// Membership by now.
func (n *Node) FileWritten(text []byte) error {
	m, err := parseMembership(text)
	if err != nil {
		return err
	}
	if e, ok := n.others.(*ensemble); ok {
		e.mu.Lock()
		e.written = m
		e.mu.Unlock()
	}
	return nil
}

// differences are the members in which a list differs from another, as a
// reconfig from the one to the other would have them.
func (m *membership) differences(to *membership) (joining []Member, leaving []uint64) {
	for _, want := range to.members {
		if have := m.member(want.ID); have == nil || !have.same(&want) {
			joining = append(joining, want)
		}
	}
	for _, have := range m.members {
		if to.member(have.ID) == nil {
			leaving = append(leaving, have.ID)
		}
	}
	return joining, leaving
}

// equal says whether two lists come to the same.
func (m *membership) equal(o *membership) bool {
	joining, leaving := m.differences(o)
	return len(joining)+len(leaving) == 0
}

// same says whether two lines name the same server in the same place. A
// wildcard is any host: it is how some files name the server they belong to.
// What they say of the client's side is not compared, since the port may stand
// in either part of a file.
func (m *Member) same(o *Member) bool {
	return m.ID == o.ID && m.Observer == o.Observer &&
		sameAddr(m.QuorumAddr, o.QuorumAddr) && sameAddr(m.ElectionAddr, o.ElectionAddr)
}

func sameAddr(a, b string) bool {
	x, p, _ := net.SplitHostPort(a)
	y, q, _ := net.SplitHostPort(b)
	return p == q && (strings.EqualFold(x, y) || wildcard(x) || wildcard(y))
}

// wildcard says whether a host is no host that anybody could dial.
func wildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// reconfigLine is what to type into zkCli.sh to get from m to the list.
func (m *membership) reconfigLine(to *membership, clientPort int) string {
	joining, leaving := m.differences(to)
	words := []string{"reconfig"}
	if len(leaving) > 0 {
		words = append(words, "-remove", strings.Trim(strings.ReplaceAll(fmt.Sprint(leaving), " ", ","), "[]"))
	}
	var lines []string
	for i := range joining {
		lines = append(lines, joining[i].reconfigLine(clientPort))
	}
	if len(lines) > 0 {
		words = append(words, "-add", strings.Join(lines, ","))
	}
	return strings.Join(words, " ")
}

// reconfigLine is the server's line with the client part that reconfig needs.
func (m *Member) reconfigLine(clientPort int) string {
	line := m.line()
	if m.ClientAddr == "" && clientPort > 0 {
		line += fmt.Sprintf(";%d", clientPort)
	}
	return line
}

// compareFile notes how this server's configuration file and the membership
// differ, and tells the operator when that is news.
func (e *ensemble) compareFile(m *membership) {
	file := e.fileList()
	line := ""
	if !m.equal(file) {
		line = m.reconfigLine(file, e.n.cfg.ClientPort)
	}
	e.mu.Lock()
	if line != e.mismatch {
		e.mismatch, e.mismatchSince = line, time.Now()
	}
	news := line != e.told && time.Since(e.mismatchSince) >= tellAfter
	if news {
		e.told = line
	}
	e.mu.Unlock()
	switch {
	case !news:
	case line == "":
		e.log.Info("the configuration file lists the members of the ensemble")
	default:
		rule := "the membership counts, change it with reconfig or correct the file"
		if e.n.cfg.Policy&tree.ReconfigEnabled == 0 {
			rule = "the file takes effect once a majority of the servers runs with it; or correct it, or allow reconfig with reconfigEnabled=true"
		}
		e.log.Warn("the configuration file does not list the members of the ensemble: "+rule,
			"run", line, "ensemble", string(m.text()), "file", string(file.text()))
	}
}

// FileDiffers returns the reconfig that would make the membership what this
// server's configuration file lists; empty when it is, or on a server that
// stands alone.
func (n *Node) FileDiffers() string {
	e, ok := n.others.(*ensemble)
	if !ok {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mismatch
}

// followFiles changes the membership by what the servers say of themselves:
// where those are that moved, and without reconfig what their files list.
// Reconcile loop of the leader.
func (e *ensemble) followFiles(l *leading, now *membership) {
	if e.reconfigs.current() != nil {
		return
	}
	if moved := e.moved(now); moved != nil {
		e.proposeMembership(l, now, moved)
		return
	}
	file := e.fileList()
	if e.n.cfg.Policy&tree.ReconfigEnabled != 0 || now.equal(file) {
		return
	}
	if e.askFiles(l); !e.agreed(now, file) {
		return
	}
	if _, ok := e.planFor(file, e.hear(l)).plan(); !ok || !e.reconfigs.begin(file) {
		return
	}
	e.log.Info("the configuration files list other servers: the membership changes", "from", string(now.text()), "to", string(file.text()))
	e.wg.Go(func() {
		a := e.pursue(e.ctx, l, file)
		done := a.Code == proto.Ok && !a.Retry
		if done {
			e.proposeMembership(l, now, file)
		}
		e.reconfigs.end(done)
	})
}

// moved is the membership with the addresses at which Raft reaches servers that
// said so themselves; nil when it has them.
func (e *ensemble) moved(now *membership) *membership {
	next := &membership{members: slices.Clone(now.members)}
	changed := false
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		m := next.member(serverOf(s.ID))
		list := e.listOf(serverOf(s.ID))
		if m == nil || m.named || list == nil || list.member(m.ID) == nil {
			continue
		}
		line := *list.member(m.ID)
		if line.ClientAddr == "" && m.ClientAddr != "" {
			line.ClientAddr = m.ClientAddr
			line.ConfigNodeTxt += ";" + m.ClientAddr
		}
		if line.Observer != m.Observer { // that is not for the server to say
			line.Observer, line.ConfigNodeTxt = m.Observer, ""
		}
		host, _, _ := net.SplitHostPort(line.QuorumAddr)
		if line.QuorumAddr == string(s.Address) && !wildcard(host) && !m.same(&line) {
			*m, changed = line, true
		}
	}
	if !changed {
		return nil
	}
	return next
}

// agreed says whether so many servers run with a list that it may become the
// membership.
func (e *ensemble) agreed(now, file *membership) bool {
	runs := func(list *membership) bool { // a majority of the list's voters
		n := 0
		for _, m := range list.members {
			if l := e.listOf(m.ID); !m.Observer && l != nil && l.equal(file) {
				n++
			}
		}
		return n > list.voters()/2
	}
	for _, m := range file.members {
		if l := e.listOf(m.ID); l != nil && now.member(m.ID) != nil && !l.equal(file) {
			return false // it has yet to be restarted
		}
	}
	return runs(now) && runs(file)
}

const (
	// filesEvery is how often a leader whose file differs asks for the others'.
	filesEvery = time.Second
	// tellAfter is how long file and membership differ before the operator is
	// told: a file that is kept in step is written in less.
	tellAfter = time.Second
	// filesFresh is how long an answer counts.
	filesFresh = 5 * time.Second
	// proposalFresh is how long a change of the membership may take to be
	// applied before it is proposed again.
	proposalFresh = 5 * time.Second
)

// announced is the list in a server's file.
type announced struct {
	list *membership
	at   time.Time
}

// noteList remembers what another server of this ensemble, or one that wants to
// be let in, has in its file.
func (j *joins) noteList(p *probe) {
	list, err := parseMembership([]byte(p.List))
	if err != nil || list.member(p.ID) == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.files == nil {
		j.files = make(map[uint64]announced)
	}
	j.files[p.ID] = announced{list, time.Now()}
}

// listOf is the list in a server's file, nil when it has not said so lately.
func (e *ensemble) listOf(server uint64) *membership {
	if server == e.self.ID {
		return e.fileList()
	}
	e.joins.mu.Lock()
	defer e.joins.mu.Unlock()
	if a := e.joins.files[server]; time.Since(a.at) < filesFresh {
		return a.list
	}
	return nil
}

// askFiles asks the servers in Raft's configuration for their lists.
func (e *ensemble) askFiles(l *leading) {
	if time.Since(l.askedFiles) < filesEvery {
		return
	}
	l.askedFiles = time.Now()
	var wg sync.WaitGroup
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		if s.ID != e.n.identity.RaftID {
			wg.Go(func() { e.askServer(s) })
		}
	}
	wg.Wait()
}

// askServer asks a server in Raft's configuration about itself, and notes its
// list; nil when it does not answer.
func (e *ensemble) askServer(s raft.Server) *probe {
	ctx, cancel := context.WithTimeout(e.ctx, probeTimeout)
	defer cancel()
	for _, addr := range append([]string{string(s.Address)}, e.addresses(s.ID)...) {
		a, theirs, err := ask(ctx, e.hub, addr, string(s.ID), &question{Probe: e.formation.describe()})
		if err == nil && theirs.ServerID == string(s.ID) && a.Probe != nil {
			e.joins.noteList(a.Probe)
			return a.Probe
		}
	}
	return nil
}

// proposeMembership proposes to put next in the place of now.
func (e *ensemble) proposeMembership(l *leading, now, next *membership) {
	e.mu.Lock()
	again := l.changing == string(now.raw) && time.Since(l.changingAt) < proposalFresh
	if !again {
		l.changing, l.changingAt = string(now.raw), time.Now()
	}
	e.mu.Unlock()
	if again || e.leadNow() != l {
		return
	}
	next.version = 0 // comes with the transaction
	body := proto.AppendBuffer(proto.AppendBuffer(nil, now.raw), next.state())
	e.n.proposeOwn(&Command{Kind: KindMembership, Body: body})
}

// applyMembership changes the membership, unless it has changed since the
// leader looked. Where reconfig counts versions this is one.
func (m *machine) applyMembership(c *Command) error {
	r := proto.AliasReader(c.Body)
	from, to := r.Buffer(), r.Buffer()
	if err := r.Err(); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if m.config == nil || string(from) != string(m.config) {
		return nil
	}
	old, err := parseState(from)
	if err != nil {
		return err
	}
	next, err := parseState(to)
	if err != nil {
		return err
	}
	tx := m.begin(c)
	if old.version != 0 {
		next.version = uint64(tx.Zxid)
	}
	m.config = next.state()
	m.tell(m.tree.SetConfig(tx, configText(m.config), -1))
	return nil
}
