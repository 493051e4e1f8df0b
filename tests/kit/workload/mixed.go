package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// mixed is a client that does everything except acquire locks.
type mixed struct {
	*session
	c        *conn
	flight   []*call // in flight, in the order sent
	values   int
	versions map[string]int32 // of registers, as last seen
	made     []string         // sequential znodes of this client
}

func (w *world) newMixed(number uint64) *mixed {
	m := &mixed{session: newSession(w, w.rand(1, number)), versions: make(map[string]int32)}
	m.linear = int(number)*100 < w.Linear*w.Clients
	return m
}

// run works until ctx is done.
func (m *mixed) run(ctx context.Context) {
	for ctx.Err() == nil {
		if m.c = m.connect(ctx); m.c == nil {
			return
		}
		m.flight = nil
		why := m.use(ctx)
		m.c.hangUp(why)
		m.learn()
		switch why {
		case "session closed":
			m.reset()
		case "session abandoned":
			m.abandon()
		}
	}
}

// use works on one connection until it ends or the client decides to leave it.
func (m *mixed) use(ctx context.Context) (why string) {
	for pause(ctx, m.about(m.w.Think), m.c.quit) {
		if !m.room(ctx) {
			break
		}
		m.learn()
		if why := m.whim(); why != "" {
			return why
		}
		for range 1 + m.rnd.IntN(3) {
			m.step()
		}
	}
	if ctx.Err() != nil {
		return m.farewell()
	}
	return "the connection ended"
}

// room waits until another request may be sent. It returns false if the
// connection or the run ends.
func (m *mixed) room(ctx context.Context) bool {
	for len(m.flight) >= m.w.Pipeline {
		select {
		case <-m.flight[0].done:
			m.learn()
		case <-ctx.Done():
			return false
		case <-m.c.quit:
			return false
		}
	}
	return true
}

// learn processes the replies that have arrived.
func (m *mixed) learn() {
	left := m.flight[:0]
	for _, p := range m.flight {
		select {
		case <-p.done:
			m.learnFrom(p.op)
		default:
			left = append(left, p)
		}
	}
	m.flight = left
}

func (m *mixed) learnFrom(o *history.Op) {
	if !o.Done() {
		return
	}
	if o.Created != "" && o.Mode.Sequential() {
		m.made = append(m.made, o.Created)
	}
	if o.Stat != nil && (o.Op == proto.OpGetData || o.Op == proto.OpSetData) {
		if len(m.versions) > 64 {
			clear(m.versions)
		}
		m.versions[o.Path] = o.Stat.Version
	}
}

// whim returns a reason to leave the connection, or "" most of the time.
func (m *mixed) whim() string {
	if m.w.Calm || !m.chance(6) {
		return ""
	}
	switch m.rnd.IntN(6) {
	case 0:
		<-m.c.send(&history.Op{Op: proto.OpCloseSession}).done
		return "session closed"
	case 1:
		return "session abandoned"
	}
	return "the client moves"
}

// farewell ends the run for this client: half of the clients close their session.
func (m *mixed) farewell() string {
	if m.rnd.IntN(2) == 0 {
		return "the run is over"
	}
	p := m.c.send(&history.Op{Op: proto.OpCloseSession})
	select {
	case <-p.done:
	case <-time.After(m.c.timeout / 3):
	}
	return "session closed"
}

// send sends a request without waiting for the reply.
func (m *mixed) send(o *history.Op) { m.flight = append(m.flight, m.c.send(o)) }

// value returns a value that no other request writes.
func (m *mixed) value() string {
	m.values++
	return fmt.Sprintf("%d.%d", m.client, m.values)
}

// step sends a random request.
func (m *mixed) step() {
	switch n := m.rnd.IntN(100); {
	case n < 55:
		m.onRegister()
	case n < 70:
		m.onSequence()
	case n < 85:
		m.onEphemeral()
	case n < 93:
		m.onContainer()
	default:
		m.look()
	}
}

// onRegister reads or writes a register.
func (m *mixed) onRegister() {
	path := m.w.register(m.rnd.IntN(m.w.Registers))
	switch n := m.rnd.IntN(100); {
	case n < 20:
		m.send(&history.Op{Op: proto.OpGetData, Path: path, Watch: m.chance(300)})
	case n < 45:
		m.send(&history.Op{Op: proto.OpSync, Path: path})
		m.send(&history.Op{Op: proto.OpGetData, Path: path, Watch: m.chance(100)})
	case n < 65:
		m.send(&history.Op{Op: proto.OpSetData, Path: path, Value: m.value(), Version: -1})
	case n < 75:
		m.send(&history.Op{Op: proto.OpSetData, Path: path, Value: m.value(), Version: m.versions[path]})
	case n < 85:
		m.send(&history.Op{Op: proto.OpCreate2, Path: path, Value: m.value()})
	case n < 88:
		m.send(&history.Op{Op: proto.OpDelete, Path: path, Version: -1})
	case n < 93:
		m.send(&history.Op{Op: proto.OpExists, Path: path, Watch: m.chance(500)})
	default:
		m.multi(path)
	}
}

// multi writes two registers, or none.
func (m *mixed) multi(path string) {
	other := m.w.register(m.rnd.IntN(m.w.Registers))
	parts := []history.Part{
		{Op: proto.OpSetData, Path: path, Value: m.value(), Version: -1},
		{Op: proto.OpSetData, Path: other, Value: m.value(), Version: -1},
	}
	if m.chance(400) {
		parts[0] = history.Part{Op: proto.OpCheck, Path: path, Version: m.versions[path]}
	}
	m.send(&history.Op{Op: proto.OpMulti, Parts: parts})
}

// onSequence creates, deletes or lists sequential znodes.
func (m *mixed) onSequence() {
	dir := m.w.sequence(m.rnd.IntN(sequences))
	switch n := m.rnd.IntN(100); {
	case n < 45 && len(m.made) < 8: // lists of children stay short
		mode := proto.ModePersistentSequential
		if m.rnd.IntN(2) == 0 {
			mode = proto.ModeEphemeralSequential
		}
		m.send(&history.Op{Op: proto.OpCreate2, Path: dir + "/n", Value: m.value(), Mode: mode})
	case n < 80 && len(m.made) > 0:
		m.send(&history.Op{Op: proto.OpDelete, Path: m.made[0], Version: -1})
		m.made = m.made[1:]
	default:
		m.send(&history.Op{Op: proto.OpGetChildren2, Path: dir, Watch: m.chance(400)})
	}
}

// onEphemeral competes for a name, or reads which client has it.
func (m *mixed) onEphemeral() {
	path := m.w.ephemeral(m.rnd.IntN(ephemerals))
	switch n := m.rnd.IntN(100); {
	case n < 40:
		m.send(&history.Op{Op: proto.OpCreate2, Path: path, Value: m.value(), Mode: proto.ModeEphemeral})
	case n < 50:
		m.send(&history.Op{Op: proto.OpDelete, Path: path, Version: -1})
	case n < 75:
		m.send(&history.Op{Op: proto.OpSync, Path: path})
		m.send(&history.Op{Op: proto.OpGetData, Path: path})
	case n < 92:
		m.send(&history.Op{Op: proto.OpExists, Path: path, Watch: m.chance(600)})
	default:
		m.send(&history.Op{Op: proto.OpGetChildren2, Path: m.w.Root + dirEphemerals, Watch: m.chance(400)})
	}
}

// onContainer fills and empties containers.
func (m *mixed) onContainer() {
	path := m.w.container(m.rnd.IntN(containers))
	child := fmt.Sprintf("%s/x%d", path, m.rnd.IntN(2))
	switch n := m.rnd.IntN(100); {
	case n < 30:
		m.send(&history.Op{Op: proto.OpCreateContainer, Path: path, Value: m.value(), Mode: proto.ModeContainer})
	case n < 55:
		m.send(&history.Op{Op: proto.OpCreate2, Path: child, Value: m.value()})
	case n < 85:
		m.send(&history.Op{Op: proto.OpDelete, Path: child, Version: -1})
	default:
		m.send(&history.Op{Op: proto.OpGetChildren2, Path: path, Watch: m.chance(400)})
	}
}

// look sends a sync, or adds a persistent watch.
func (m *mixed) look() {
	switch n := m.rnd.IntN(100); {
	case n < 70:
		m.send(&history.Op{Op: proto.OpSync, Path: m.w.Root})
	case n < 85:
		m.send(&history.Op{Op: proto.OpAddWatch, Path: m.w.ephemeral(m.rnd.IntN(ephemerals)), Add: int32(proto.AddWatchPersistent)})
	case n < 90:
		m.send(&history.Op{Op: proto.OpAddWatch, Path: m.w.Root + dirRegisters, Add: int32(proto.AddWatchPersistentRecursive)})
	case n < 95:
		m.send(&history.Op{Op: proto.OpAddWatch, Path: m.w.sequence(0), Add: int32(proto.AddWatchPersistent)})
	default:
		m.send(&history.Op{Op: proto.OpAddWatch, Path: m.w.Root + dirEphemerals, Add: int32(proto.AddWatchPersistentRecursive)})
	}
}
