package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How the behaviour of the state machine changes while servers of two versions
// run side by side. What applying an entry does depends on the level that the
// log has reached, never on the version of the server that applies it: a change
// of behaviour is an "if level >= n". The level goes up by an entry of its own,
// which the leader proposes once every server of the membership, observers
// included, has said that it knows that level. So the servers can be replaced
// one by one; the last one brings the change. There is no way back: a server
// that does not know the level of the log stops, whatever it finds first, an
// entry or a snapshot.

// levelEvery is how often a leader asks who knows a level above the log's.
const levelEvery = time.Second

// tooNew is why a server stops at an entry or a snapshot of a newer version.
func (m *machine) tooNew(asked uint32) error {
	return fmt.Errorf("it needs behaviour level %d, this server knows %d: run the version of the servers that wrote it, or a newer one", asked, m.newest)
}

// Level is the behaviour level that the log has reached, and Newest the highest
// one that this server knows. They differ while a server of the ensemble still
// runs an older version.
func (n *Node) Level() (now, newest uint32) {
	n.tree.RLock()
	defer n.tree.RUnlock()
	return n.machine.level, n.cfg.newest
}

// startLevel is the level that a leadership begins with: a new state begins
// with the first one.
func (n *Node) startLevel() uint32 {
	now, newest := n.Level()
	if n.cfg.standalone() {
		return newest // nobody else has to know it
	}
	return max(now, 1)
}

// applyRaise applies the leader's decision that a level is known to all.
func (m *machine) applyRaise(c *Command) error {
	if len(c.Body) != 4 {
		return errors.New("a level of another size than 4 bytes")
	}
	to := binary.BigEndian.Uint32(c.Body)
	if to > m.newest {
		return m.tooNew(to)
	}
	if to > m.level {
		m.log.Info("the log goes on at another behaviour level", "from", m.level, "to", to)
		m.level = to
	}
	return nil
}

// raise proposes a higher level if everybody knows it. Reconcile loop.
func (e *ensemble) raise(l *leading) {
	now, newest := e.n.Level()
	if now >= newest || time.Since(l.asked) < levelEvery {
		return
	}
	l.asked = time.Now()
	to := e.commonLevel(newest)
	if to <= now || e.leadNow() != l {
		return
	}
	e.n.proposeOwn(&Command{Kind: KindRaise, Body: binary.BigEndian.AppendUint32(nil, to)})
}

// commonLevel is the highest level that every server of the membership knows, 0
// when one does not answer or has yet to come.
func (e *ensemble) commonLevel(newest uint32) uint32 {
	m := e.replicated()
	if m == nil {
		return 0
	}
	servers := e.n.raftNow().GetConfiguration().Configuration().Servers
	here := make(map[uint64]bool)
	var mu sync.Mutex
	var wg sync.WaitGroup
	lowest := newest
	for _, s := range servers {
		here[serverOf(s.ID)] = true
		if s.ID == e.n.identity.RaftID {
			continue
		}
		wg.Go(func() {
			known := uint32(0)
			if p := e.askServer(s); p != nil {
				known = p.Level
			}
			mu.Lock()
			defer mu.Unlock()
			lowest = min(lowest, known)
		})
	}
	wg.Wait()
	for i := range m.members {
		if !here[m.members[i].ID] {
			return 0
		}
	}
	return lowest
}
