package raftfsm

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/raft"
)

// How a server that stood alone becomes a member of an ensemble, and back. With
// the same id nothing is to be done: Raft's configuration names it as the only
// voter, so it leads its list at once, and lets the others in. A server that
// stands alone has no number of its own, though; the state of one that was 1
// becomes that of member 3 by one more entry in its log: a configuration in
// which the only voter goes by another name. Nobody else's vote is touched, as
// there is nobody else.

// adopt makes the state of a server that stood alone the state of this member.
func (n *Node) adopt(old identity) error {
	conf, last, err := n.storedConfiguration()
	if err != nil {
		return err
	}
	store, err := openSeat(n.cfg.FS, n.cfg.LogDir)
	if err != nil {
		return err
	}
	id := joinerID(n.cfg.ID, store.seat.Disk)
	if len(conf.Servers) != 1 || store.seat.Bound != nil || store.seat.Taken {
		return n.foreign(old)
	}
	switch only := conf.Servers[0]; {
	case only.ID == id: // it was interrupted here
	case only.ID == old.RaftID && only.Address == standaloneAddr:
		if err := n.rename(id, last); err != nil {
			return fmt.Errorf("making the state of server %d that of server %d: %w", old.Server, n.cfg.ID, err)
		}
	default:
		return n.foreign(old)
	}
	n.identity = old
	n.identity.Server, n.identity.RaftID = n.cfg.ID, id
	n.log.Info("a server that stood alone becomes a member of an ensemble", "server", n.cfg.ID, "as", string(id))
	return n.identity.write(n.cfg.FS, n.cfg.LogDir)
}

// foreign is the refusal of a directory that belongs to another server.
func (n *Node) foreign(owner identity) error {
	return fmt.Errorf("%s holds the state of server %d, not of server %d: check myid and dataDir", n.cfg.LogDir, owner.Server, n.cfg.ID)
}

// isMember says whether this Node runs as a member of an ensemble, as opposed to
// one that reads what a server has left.
func (n *Node) isMember() bool {
	_, ok := n.others.(*ensemble)
	return ok
}

// wasMember says whether the log directory belongs to a member of an ensemble.
func (n *Node) wasMember() bool {
	_, err := n.cfg.FS.Stat(filepath.Join(n.cfg.LogDir, seatFile))
	return err == nil
}

// rename appends a configuration with this server as the only voter.
func (n *Node) rename(id raft.ServerID, last raft.Log) error {
	term, err := n.stores.Stable().GetUint64([]byte("CurrentTerm"))
	if err != nil && err.Error() != errNotFound {
		return err
	}
	for _, m := range n.cfg.Members {
		if m.ID != n.cfg.ID {
			continue
		}
		only := raft.Server{Suffrage: raft.Voter, ID: id, Address: raft.ServerAddress(firstDialable(m.ID, m.QuorumAddr))}
		return n.stores.Logs().StoreLog(&raft.Log{
			Index: last.Index + 1, Term: max(term, last.Term), Type: raft.LogConfiguration,
			Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{only}}),
		})
	}
	return errors.New("it is not on the list of servers in its configuration")
}

// errNotFound is what stable stores answer, by Raft's convention, for what was
// never stored.
const errNotFound = "not found"

// storedConfiguration reads Raft's newest configuration from the stores, and
// where the log ends.
func (n *Node) storedConfiguration() (conf raft.Configuration, end raft.Log, err error) {
	snaps, err := n.stores.Snapshots().List()
	if err != nil {
		return conf, end, err
	}
	if len(snaps) > 0 {
		conf = snaps[0].Configuration
		end.Index, end.Term = snaps[0].Index, snaps[0].Term
	}
	first, err := n.stores.Logs().FirstIndex()
	if err != nil {
		return conf, end, err
	}
	last, err := n.stores.Logs().LastIndex()
	if err != nil {
		return conf, end, err
	}
	var l raft.Log
	for i := max(first, 1); i <= last; i++ {
		if err := n.stores.Logs().GetLog(i, &l); err != nil {
			return conf, end, fmt.Errorf("log entry %d: %w", i, err)
		}
		if l.Type == raft.LogConfiguration && (len(snaps) == 0 || i > snaps[0].ConfigurationIndex) {
			conf = raft.DecodeConfiguration(l.Data)
		}
		if i >= end.Index {
			end.Index, end.Term = l.Index, l.Term
		}
	}
	return conf, end, nil
}
