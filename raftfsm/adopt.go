package raftfsm

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// How a standalone server becomes a member of an ensemble, and back. If the server
// keeps its id, there is nothing to do: Raft's configuration names it as the only
// voter, so it leads the ensemble at once and admits the others. But a standalone
// server always has id 1. To become, e.g., member 3, it appends one entry to its log:
// a configuration that renames the only voter. This is safe because no other server
// has a vote.

// adopt turns the state of a standalone server into the state of this member.
func (n *Node) adopt(old identity) error {
	conf, last, err := n.storedConfiguration()
	if err != nil {
		return err
	}
	store, err := bootstrap.Open(n.cfg.FS, n.cfg.LogDir)
	if err != nil {
		return err
	}
	state := store.State()
	id := membership.JoinerID(n.cfg.ID, state.Disk)
	if len(conf.Servers) != 1 || state.Bound != nil || state.Taken {
		return n.foreign(old)
	}
	switch only := conf.Servers[0]; {
	case only.ID == id: // an earlier adopt was interrupted after rename
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

// foreign returns the error for a directory that belongs to another server.
func (n *Node) foreign(owner identity) error {
	return fmt.Errorf("%s holds the state of server %d, not of server %d: check myid and dataDir", n.cfg.LogDir, owner.Server, n.cfg.ID)
}

// wasMember reports whether the log directory belongs to a member of an ensemble.
func (n *Node) wasMember() bool {
	_, err := n.cfg.FS.Stat(filepath.Join(n.cfg.LogDir, bootstrap.StateFile))
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
		only := raft.Server{Suffrage: raft.Voter, ID: id, Address: raft.ServerAddress(membership.FirstDialable(m.ID, m.QuorumAddr))}
		return n.stores.Logs().StoreLog(&raft.Log{
			Index: last.Index + 1, Term: max(term, last.Term), Type: raft.LogConfiguration,
			Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{only}}),
		})
	}
	return errors.New("it is not on the list of servers in its configuration")
}

// errNotFound is the text of the error that stable stores return, by Raft's
// convention, for a key that was never stored.
const errNotFound = "not found"

// storedConfiguration reads Raft's newest configuration and the end of the log from
// the stores.
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
