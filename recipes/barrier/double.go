package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// DoubleBarrier lets a fixed number of processes begin a piece of work together, with
// Enter, and end it together, with Leave. Each process uses its own DoubleBarrier. The
// processes can repeat this in a loop, with the same DoubleBarrier or with a new one for
// each round: no round begins before every member of the previous round has left, or its
// session has ended. Only one goroutine may use a DoubleBarrier, and it must call Enter
// and Leave alternately.
//
// Members that use Curator's DistributedDoubleBarrier or Kazoo's DoubleBarrier can share
// one round. Those recipes don't separate consecutive rounds, so you should use a loop only
// if all members are DoubleBarriers.
type DoubleBarrier struct {
	conn      recipes.Conn
	path      string
	members   int
	id        string        // distinguishes this process from the other members
	entries   int           // number of Enters
	member    *member       // nil outside Enter and Leave
	withdrawn chan struct{} // closed when the znode of the last failed round is gone
}

// NewDouble returns one member's view of the barrier at path, which the given number of
// members enter together. path is a directory for their znodes and need not exist. Each
// member needs permission to read, write, create and delete in this directory.
func NewDouble(conn recipes.Conn, path string, members int) *DoubleBarrier {
	return &DoubleBarrier{conn: conn, path: path, members: members, id: rand.Text()}
}

// Enter waits until all members have entered. If ctx ends first, this member has not
// entered. If the session ends first, the error matches [client.ErrSessionExpired]:
// the other members may have begun a round with this one, and it can enter the next.
func (d *DoubleBarrier) Enter(ctx context.Context) error {
	if d.member != nil {
		return fmt.Errorf("barrier %s: enter: it was entered, and not left", d.path)
	}
	err := d.enter(ctx)
	if err != nil {
		d.withdraw()
		return fmt.Errorf("barrier %s: enter: %w", d.path, err)
	}
	return nil
}

func (d *DoubleBarrier) enter(ctx context.Context) error {
	// If an earlier call left a znode, it would count as another member, so we wait until
	// it is gone.
	if d.withdrawn != nil {
		select {
		case <-d.withdrawn:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s, err := d.conn.Session(ctx)
	if err != nil {
		return err
	}
	d.entries++
	m := &member{session: s, dir: d.path, name: d.id + entrySeparator + strconv.Itoa(d.entries)}
	_, _, early, err := s.ExistsW(ctx, m.ready())
	if err != nil {
		return err
	}
	defer recipe.Drop(ctx, early)
	d.member = m
	if err := m.register(ctx); err != nil {
		return err
	}
	return m.awaitRound(ctx, d.members, early)
}

// Leave waits until all members of the round have left, or their sessions have ended. If
// ctx ends first, the others do not wait for this member. If the connection is lost, Leave
// waits for the next one. If the session ends, the other members consider this member gone,
// and Leave still waits for them.
func (d *DoubleBarrier) Leave(ctx context.Context) error {
	if d.member == nil {
		return fmt.Errorf("barrier %s: leave: it was not entered", d.path)
	}
	err := recipe.InSession(ctx, d.conn, func(s recipes.Session) error { return d.member.leave(ctx, s) })
	if err != nil {
		d.withdraw()
		return fmt.Errorf("barrier %s: leave: %w", d.path, err)
	}
	d.member = nil
	return nil
}

// withdraw deletes the member's znode. If the server doesn't reply within patience, we
// continue in the background, in the next session if necessary. The znode disappears with
// its session at the latest.
func (d *DoubleBarrier) withdraw() {
	m := d.member
	d.member = nil
	if m == nil {
		return
	}
	done := make(chan struct{})
	d.withdrawn = done
	go func() {
		defer close(done)
		// The znode can outlive the member's session, because the client may consider a
		// session lost before the server does. Any session may delete it.
		_ = recipe.InSession(context.Background(), d.conn, func(s recipes.Session) error {
			return m.withdraw(context.Background(), s)
		})
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// member is one entry into one round.
//
// The znode ready marks a round: it exists from the time when all members have entered until
// the last one has left. Its czxid identifies the round. A member belongs to the first round
// with a ready that is younger than the member's own znode, so a znode created while the
// members of a round are still leaving counts for the next round. These rules separate the
// rounds:
//
//   - ready is created in one transaction, which checks that the znodes of enough members
//     exist.
//   - ready is deleted only when no znode of its round is left.
//   - Both transactions also write the directory's data, unchanged, at the version that we
//     read before anything else. This keeps a process with an outdated view from deleting
//     the ready of a later round, which looks the same.
//
// ready is persistent, as Curator's is: a member that has not seen it yet should find it
// even if the process that created it has died.
type member struct {
	session recipes.Session // the session that owns the znode
	dir     string
	name    string // the znode's name, unique to this entry: an id of the DoubleBarrier, entrySeparator, and a number
	joined  int64  // czxid of the znode
	round   int64  // czxid of the round's ready, or 0 before it is known
}

func (m *member) path() string { return recipe.Join(m.dir, m.name) }

func (m *member) ready() string { return recipe.Join(m.dir, readyName) }

// readyName is the name of the znode that marks a round, the same as Curator's and
// Kazoo's.
const readyName = "ready"

// entrySeparator ends the part of a znode's name that all entries of one
// DoubleBarrier have in common. It is in no name that Curator or Kazoo chooses.
const entrySeparator = "_"

// identity returns the part of a znode's name that identifies the DoubleBarrier.
func identity(name string) string {
	id, _, _ := strings.Cut(name, entrySeparator)
	return id
}

// register creates the member's znode.
func (m *member) register(ctx context.Context) error {
	for {
		_, err := m.session.Create(ctx, m.path(), nil, recipes.Ephemeral, nil)
		switch {
		case err == nil, errors.Is(err, client.ErrNodeExists): // our own attempt created it, but the reply was lost
			stat, there, err := m.session.Exists(ctx, m.path())
			if err == nil && !there {
				err = m.deleted()
			}
			m.joined = stat.Czxid
			return err
		case errors.Is(err, client.ErrNoNode):
			if err := recipes.EnsureContainers(ctx, m.session, m.dir); err != nil {
				return err
			}
		case !recipes.Again(ctx, err):
			return err
		}
	}
}

func (m *member) deleted() error {
	return fmt.Errorf("%s was deleted by another client: %w", m.path(), client.ErrNoNode)
}

// awaitRound waits for the round that this member belongs to. If this member finds that all
// have entered, it starts the round. early is a watch on ready that was set before the
// member's znode existed: a member that uses another library may create ready and delete it
// again before awaitRound reads it.
func (m *member) awaitRound(ctx context.Context, members int, early recipes.Watch) error {
	s, created := m.session, false
	for {
		g, err := m.generation(ctx, s)
		if err != nil {
			return err
		}
		ready, marked, w, err := s.ExistsW(ctx, m.ready())
		if err != nil {
			return err
		}
		if !marked { // a member that uses another library may have deleted it already
			if zxid := createdSince(early, m.joined); zxid != 0 {
				ready.Czxid, marked = zxid, true
			} else if created {
				ready.Czxid, marked = g.changed, true
			}
		}
		if marked && ready.Czxid > m.joined {
			recipe.Drop(ctx, w)
			m.round = ready.Czxid
			return nil
		}
		names, err := m.names(ctx, s)
		entrants := m.entrants(names)
		switch {
		case err == nil && !slices.Contains(names, m.name):
			err = m.deleted()
		case err == nil && !marked && len(entrants) < members:
			created, err = awaitCreated(ctx, w)
			w = nil
		}
		if w != nil {
			recipe.Drop(ctx, w)
		}
		switch {
		case err != nil:
			return err
		case marked:
			err = m.awaitEnd(ctx, s, g, names, ready.Czxid)
		case w != nil:
			err = m.start(ctx, g, entrants[1:], members)
		}
		if err != nil {
			return err
		}
	}
}

// awaitEnd waits until one member of an earlier round has left. If no member is left, all
// have died or given up, and we delete the round's ready.
func (m *member) awaitEnd(ctx context.Context, s recipes.Session, g generation, names []string, round int64) error {
	name, err := m.first(ctx, s, names, round)
	if err != nil {
		return err
	}
	if name != "" {
		return awaitGone(ctx, s, recipe.Join(m.dir, name), round)
	}
	_, err = m.turn(ctx, s, g, recipes.Op{Kind: recipes.OpDelete, Path: m.ready(), Version: client.AnyVersion})
	return err
}

// start creates ready if this member and enough of the others still exist. If start fails
// because something has changed, the caller should read the directory again.
func (m *member) start(ctx context.Context, g generation, others []string, members int) error {
	ops := []recipes.Op{
		{Kind: recipes.OpCheck, Path: m.path(), Version: client.AnyVersion},
		{Kind: recipes.OpCreate, Path: m.ready(), Mode: recipes.Persistent},
	}
	for _, name := range others {
		if len(ops) <= members {
			ops = append(ops, recipes.Op{Kind: recipes.OpCheck, Path: recipe.Join(m.dir, name), Version: client.AnyVersion})
		}
	}
	_, err := m.turn(ctx, m.session, g, ops...)
	return err
}

// leave deletes the member's znode and waits for the others of its round. We wake few
// members at a time: the first in order leaves last and waits for the last in order, and
// all others wait for the first.
func (m *member) leave(ctx context.Context, s recipes.Session) error {
	for {
		g, err := m.generation(ctx, s)
		if errors.Is(err, client.ErrNoNode) {
			return nil // the directory is gone, and so are all members
		}
		if err != nil {
			return err
		}
		names, err := m.names(ctx, s)
		if err != nil {
			return err
		}
		first, err := m.first(ctx, s, names, m.round)
		if err != nil {
			return err
		}
		switch first {
		case "":
			var over bool
			if over, err = m.unmark(ctx, s, g); over {
				return err
			}
		case m.name:
			err = m.leaveLast(ctx, s, g, names)
		default:
			if err = erase(ctx, s, m.path()); err == nil {
				err = awaitGone(ctx, s, recipe.Join(m.dir, first), m.round)
			}
		}
		if err != nil {
			return err
		}
	}
}

// leaveLast waits for the other members of the round and then ends the round: one
// transaction deletes the member's znode and ready.
func (m *member) leaveLast(ctx context.Context, s recipes.Session, g generation, names []string) error {
	slices.Reverse(names)
	last, err := m.first(ctx, s, names, m.round)
	if err != nil || last == "" {
		return err
	}
	if last != m.name {
		return awaitGone(ctx, s, recipe.Join(m.dir, last), m.round)
	}
	done, err := m.turn(ctx, s, g,
		recipes.Op{Kind: recipes.OpDelete, Path: m.path(), Version: client.AnyVersion},
		recipes.Op{Kind: recipes.OpDelete, Path: m.ready(), Version: client.AnyVersion})
	if err != nil || done {
		return err
	}
	_, marked, err := s.Exists(ctx, m.ready())
	if err == nil && !marked { // a member that uses another library has deleted it unconditionally
		err = erase(ctx, s, m.path())
	}
	return err
}

// unmark deletes the ready of a round without members, and reports whether it is gone.
func (m *member) unmark(ctx context.Context, s recipes.Session, g generation) (bool, error) {
	ready, marked, err := s.Exists(ctx, m.ready())
	if err != nil || !marked || ready.Czxid != m.round {
		return true, err
	}
	return m.turn(ctx, s, g, recipes.Op{Kind: recipes.OpDelete, Path: m.ready(), Version: client.AnyVersion})
}

// withdraw deletes the member's znode, and ready if it was the last of a round. If this
// fails, the next member that enters completes the cleanup.
func (m *member) withdraw(ctx context.Context, s recipes.Session) error {
	if err := erase(ctx, s, m.path()); err != nil {
		return err
	}
	for {
		g, err := m.generation(ctx, s)
		if err != nil {
			return err
		}
		ready, marked, err := s.Exists(ctx, m.ready())
		if err != nil || !marked {
			return err
		}
		m.round = ready.Czxid
		names, err := m.names(ctx, s)
		if err != nil {
			return err
		}
		if first, err := m.first(ctx, s, names, m.round); err != nil || first != "" {
			return err
		}
		if over, err := m.unmark(ctx, s, g); over || err != nil {
			return err
		}
	}
}

// generation is the state of the directory that a decision is based on.
type generation struct {
	data    []byte
	version int32
	changed int64 // zxid of the last change of the children
}

// generation reads the directory's version, which every start and every end of a round
// increments. A condition on version -1 would match every version, so we skip that version
// with an extra, harmless write.
func (m *member) generation(ctx context.Context, s recipes.Session) (generation, error) {
	for {
		data, stat, err := s.Get(ctx, m.dir)
		if err != nil || stat.Version != client.AnyVersion {
			return generation{data, stat.Version, stat.Pzxid}, err
		}
		if _, err := s.Set(ctx, m.dir, data, client.AnyVersion); err != nil && !recipes.Again(ctx, err) {
			return generation{}, err
		}
	}
}

// turn executes ops, unless a round has started or ended since we read g. It reports
// whether it did. If it did not, or if that is unknown, the caller should read the
// directory again.
func (m *member) turn(ctx context.Context, s recipes.Session, g generation, ops ...recipes.Op) (bool, error) {
	ops = append(ops, recipes.Op{Kind: recipes.OpSet, Path: m.dir, Data: g.data, Version: g.version})
	err := s.Multi(ctx, ops...)
	for _, changed := range []error{client.ErrBadVersion, client.ErrNoNode, client.ErrNodeExists} {
		if errors.Is(err, changed) {
			return false, nil
		}
	}
	if err != nil && recipes.Again(ctx, err) {
		return false, nil
	}
	return err == nil, err
}

// names lists the members' znodes, in order.
func (m *member) names(ctx context.Context, s recipes.Session) ([]string, error) {
	names, _, err := s.Children(ctx, m.dir)
	names = slices.DeleteFunc(names, func(n string) bool { return n == readyName })
	slices.Sort(names)
	return names, err
}

// entrants returns one of the sorted names for each DoubleBarrier and each member of
// another library; the first is this member's. E.g. a DoubleBarrier has two znodes if its
// client considered a session lost and called Enter again before the server ended that
// session.
func (m *member) entrants(names []string) []string {
	list := []string{m.name}
	for _, name := range names {
		if id := identity(name); id != identity(m.name) && id != identity(list[len(list)-1]) {
			list = append(list, name)
		}
	}
	return list
}

// first returns the first of names that belongs to a round, or "". While members leave, the
// next round has few members, so we read few znodes.
func (m *member) first(ctx context.Context, s recipes.Session, names []string, round int64) (string, error) {
	for _, name := range names {
		stat, there, err := s.Exists(ctx, recipe.Join(m.dir, name))
		if err != nil {
			return "", err
		}
		if there && stat.Czxid < round {
			return name, nil
		}
	}
	return "", nil
}

// awaitGone waits for a change of the znode at path, unless the znode is gone or was
// created again for a later round.
func awaitGone(ctx context.Context, s recipes.Session, path string, round int64) error {
	_, stat, w, err := s.GetW(ctx, path)
	if errors.Is(err, client.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if stat.Czxid > round {
		recipe.Drop(ctx, w)
		return nil
	}
	return recipe.Await(ctx, w)
}

// awaitCreated waits for the event of w and reports whether the znode was created.
func awaitCreated(ctx context.Context, w recipes.Watch) (bool, error) {
	select {
	case e, ok := <-w.Events():
		if !ok {
			return false, client.ErrSessionExpired
		}
		return e.Type == client.EventNodeCreated, nil
	case <-ctx.Done():
		recipe.Drop(ctx, w)
		return false, context.Cause(ctx)
	}
}

// createdSince returns the zxid that created the watched znode if it is greater than the
// given zxid. Otherwise it returns 0, e.g. if the znode doesn't exist yet or the zxid is
// unknown.
func createdSince(w recipes.Watch, zxid int64) int64 {
	select {
	case e := <-w.Events():
		if e.Type == client.EventNodeCreated && e.Zxid > zxid {
			return e.Zxid
		}
	default:
	}
	return 0
}

// erase deletes a znode that may no longer exist.
func erase(ctx context.Context, s recipes.Session, path string) error {
	for {
		err := s.Delete(ctx, path, client.AnyVersion)
		if err == nil || errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if !recipes.Again(ctx, err) {
			return err
		}
	}
}
