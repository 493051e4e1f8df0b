package apply

import (
	"fmt"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tree"
)

// The membership in the state: how commands change it, and the checks before that.

// Membership returns the membership (membership.List.State).
func (s *State) Membership() []byte {
	s.Tree.RLock()
	defer s.Tree.RUnlock()
	return s.Config
}

// Levels is Level.
func (m *Machine) Levels() (now, newest uint32) {
	m.Tree.RLock()
	defer m.Tree.RUnlock()
	return m.Level, m.Newest
}

// establish gives the first membership its version, as in ZooKeeper: the first zxid of the
// current leadership. If reconfig is disabled, the configuration files determine the
// membership, and the version stays 0.
func (s *State) establish(zxid int64, policy tree.Policy) error {
	if policy&tree.ReconfigEnabled == 0 {
		return nil
	}
	now, err := membership.ParseState(s.Config)
	if err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	if now.Version == 0 {
		now.Version = uint64(zxid)
		s.Config = now.State()
	}
	return nil
}

// dissolve removes the membership. The last member of an ensemble continues as a
// standalone server: its configuration file names no other servers.
func (m *Machine) dissolve(s *command.LeaderStart) {
	m.Config = nil
	m.tx = tree.Txn{Zxid: NextZxid(m.Tree.LastZxid()), Time: s.Time, Policy: s.Policy}
	m.setConfig(nil, 0)
}

// installConfig writes the config text into its znode, as every new leader does. If the
// text changes, the watches on the znode fire.
func (m *Machine) installConfig() {
	m.setConfig(membership.ConfigText(m.Config), -1)
}

// setConfig writes the config text into its znode in the transaction m.tx.
func (m *Machine) setConfig(text []byte, version int32) {
	m.tx.Record = m.rec.recording()
	res := m.Tree.SetConfig(&m.tx, text, version)
	m.rec.config()
	m.tell(res)
}

// tell makes the handler fire the watches for a change of /zookeeper/config that no client
// asked for.
func (m *Machine) tell(res *tree.Result) {
	if len(res.Events) > 0 {
		m.out = command.Applied{Kind: command.KindReconfigDone, Op: proto.OpReconfig}
		m.ran(res)
		m.Handler.Applied(&m.out)
	}
}

// applyMembership changes the membership, unless it has changed since the leader read it.
// If reconfig keeps a version, the change gets a new version.
func (m *Machine) applyMembership(c *command.Command) error {
	r := proto.AliasReader(c.Body)
	from, to := r.Buffer(), r.Buffer()
	if err := r.Err(); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if m.Config == nil || string(from) != string(m.Config) {
		return nil
	}
	old, err := membership.ParseState(from)
	if err != nil {
		return err
	}
	next, err := membership.ParseState(to)
	if err != nil {
		return err
	}
	if m.Mirror.Phase == mirrored.Following { // the other ensemble determines zxids and the list in the znode
		next.Version = old.Version
		m.Config = next.State()
		return nil
	}
	tx := m.begin(c)
	if old.Version != 0 {
		next.Version = uint64(tx.Zxid)
	}
	m.Config = next.State()
	m.installConfig()
	return nil
}

// applyReconfig applies a client's reconfig.
func (m *Machine) applyReconfig(c *command.Command, q *proto.ReconfigRequest) {
	next, code := m.CheckReconfig(q, m.tx.Policy, c.IDs)
	if code == proto.Ok {
		code = m.MayReconfig(next, m.tx.Policy, c.IDs)
	}
	if code != proto.Ok {
		m.advance(c)
		m.rec.nothing(code)
		m.out.Code = code
		return
	}
	tx := m.begin(c)
	next.Version = uint64(tx.Zxid)
	if m.Level < membership.NamedLevel {
		next.ForgetNamed()
	}
	m.Config = next.State()
	m.ran(m.Tree.SetConfig(tx, membership.ConfigText(m.Config), -1))
	m.rec.config()
}

// applyRefusal applies a reconfig that the leader refused.
func (m *Machine) applyRefusal(c *command.Command) error {
	code, err := command.RefusalCode(c.Body)
	if err != nil {
		return err
	}
	m.out.Kind, m.out.Op, m.out.Body = command.KindRequest, proto.OpReconfig, nil
	if session := m.Sessions.Check(c.Session, c.Gen); session != proto.Ok {
		m.out.Code = session
		if session == proto.ErrSessionExpired {
			m.advance(c)
			m.rec.nothing(session)
		}
		return nil
	}
	m.advance(c)
	m.rec.nothing(code)
	m.out.Code = code
	return nil
}

// CheckReconfig returns the membership that a reconfig results in, or the error code. As
// in ZooKeeper, the permission is checked last, see MayReconfig. A reconfig that is too
// long isn't parsed, so its permission is checked here. The caller holds the tree's lock.
func (s *State) CheckReconfig(q *proto.ReconfigRequest, policy tree.Policy, ids []proto.ID) (*membership.List, proto.Code) {
	switch {
	case policy&tree.ReconfigEnabled == 0:
		return nil, proto.ErrReconfigDisabled
	case s.Config == nil:
		return nil, proto.ErrUnimplemented // a standalone server
	}
	now, err := membership.ParseState(s.Config)
	if err != nil {
		return nil, proto.ErrSystemError
	}
	if q.CurConfigID != -1 && uint64(q.CurConfigID) != now.Version {
		return nil, proto.ErrBadVersion
	}
	switch {
	case !membership.TooLong(q):
		return now.Next(q, policy)
	case !s.MayWriteConfig(policy, ids):
		return nil, proto.ErrNoAuth
	}
	return nil, proto.ErrBadArguments
}

// Conflict returns the address conflict that made CheckReconfig refuse a reconfig, or nil
// if there was another reason. The caller holds the tree's lock.
func (s *State) Conflict(q *proto.ReconfigRequest, policy tree.Policy) error {
	now, err := membership.ParseState(s.Config)
	if err != nil || membership.TooLong(q) {
		return nil
	}
	if target, code := now.Asked(q, policy); code == proto.Ok {
		return now.Conflict(target)
	}
	return nil
}

// MayWriteConfig reports whether ids may write /zookeeper/config. The caller holds the
// tree's lock.
func (s *State) MayWriteConfig(policy tree.Policy, ids []proto.ID) bool {
	return policy&tree.SkipACL != 0 || s.Tree.Get(tree.ConfigPath).Allows(proto.OpReconfig.Perms(), ids)
}

// MayReconfig checks that ids may write /zookeeper/config, and that the servers' ids are
// valid. The caller holds the tree's lock.
func (s *State) MayReconfig(target *membership.List, policy tree.Policy, ids []proto.ID) proto.Code {
	_, over := target.TooLarge()
	switch {
	case !s.MayWriteConfig(policy, ids):
		return proto.ErrNoAuth
	case over:
		return proto.ErrBadArguments
	}
	return proto.Ok
}
