package ensemble

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// How the behaviour of the state machine changes while servers of two versions run side
// by side. The effect of an entry depends on the level that the log has reached, never on
// the version of the server that applies it: a change of behaviour is an "if level >= n".
// A separate entry raises the level. The leader proposes it once every server of the
// membership, observers included, has reported that it knows that level. So an operator
// can replace the servers one by one, and the last one activates the change. A level
// can't be lowered: a server that doesn't know the level of the log stops at the first
// entry or snapshot with that level.

// LevelEvery is the interval at which a leader asks which servers know a level above the
// log's.
const LevelEvery = time.Second

// raise proposes a higher level if all servers know it. Reconcile loop.
func (c *changes) raise(l *leading) {
	now, newest := c.env.Machine.Levels()
	if now >= newest || time.Since(l.asked) < LevelEvery {
		return
	}
	l.asked = time.Now()
	to := c.commonLevel(newest)
	if to <= now || c.leadNow() != l {
		return
	}
	c.env.ProposeOwn(&command.Command{Kind: command.KindRaise, Body: binary.BigEndian.AppendUint32(nil, to)})
}

// commonLevel returns the highest level that every server of the membership knows. It
// returns 0 when a server doesn't answer or hasn't joined yet.
func (c *changes) commonLevel(newest uint32) uint32 {
	m := c.replicated()
	if m == nil {
		return 0
	}
	known := c.knownLevels(newest)
	lowest := newest
	for _, level := range known {
		lowest = min(lowest, level)
	}
	for i := range m.Members {
		if _, here := known[m.Members[i].ID]; !here {
			return 0
		}
	}
	return lowest
}

// knownLevels asks every server in Raft's configuration which level it knows, and notes
// 0 for a server that doesn't answer. This server knows own.
func (c *changes) knownLevels(own uint32) map[uint64]uint32 {
	known := make(map[uint64]uint32)
	var mu sync.Mutex
	var wg sync.WaitGroup
	note := func(id uint64, level uint32) {
		mu.Lock()
		defer mu.Unlock()
		known[id] = level
	}
	for _, s := range c.env.RaftNow().GetConfiguration().Configuration().Servers {
		if s.ID == c.env.Identity.RaftID {
			note(membership.ServerOf(s.ID), own)
			continue
		}
		wg.Go(func() {
			level := uint32(0)
			if p := c.places.AskServer(s); p != nil {
				level = p.Level
			}
			note(membership.ServerOf(s.ID), level)
		})
	}
	wg.Wait()
	return known
}

// Lacking returns the other servers that may not know a behaviour level, each with the
// reason.
func (c *changes) Lacking(level uint32) (who []string) {
	if c.env.RaftNow() == nil {
		return []string{propose.ErrNoRaft.Error()}
	}
	known := c.knownLevels(level)
	for _, id := range slices.Sorted(maps.Keys(known)) {
		switch l := known[id]; {
		case l == 0:
			who = append(who, fmt.Sprintf("server %d does not answer", id))
		case l < level:
			who = append(who, fmt.Sprintf("server %d knows level %d", id, l))
		}
	}
	return who
}
