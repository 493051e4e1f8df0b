package datadir

import (
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// How a standalone server becomes a member of an ensemble, and back. If the server
// keeps its id, there is nothing to do: Raft's configuration names it as the only
// voter, so it leads the ensemble immediately and admits the others. But a standalone
// server always has id 1. To become, e.g., member 3, it appends one entry to its log:
// a configuration that renames the only voter. This is safe because no other server
// has a vote.

// adopt turns the state of a standalone server into the state of this member.
func (d Dirs) adopt(old Identity, server Server, s Stores, log *slog.Logger) (Identity, error) {
	conf, last, err := storedConfiguration(s)
	if err != nil {
		return old, err
	}
	store, err := bootstrap.Open(d.FS, d.Log)
	if err != nil {
		return old, err
	}
	state := store.State()
	next := old
	next.Server, next.RaftID = server.ID, membership.JoinerID(server.ID, state.Disk)
	if len(conf.Servers) != 1 || state.Bound != nil || state.Taken {
		return old, d.foreign(old, server.ID)
	}
	switch only := conf.Servers[0]; {
	case only.ID == next.RaftID: // an earlier adopt was interrupted after rename
	case only.ID == old.RaftID && only.Address == StandaloneAddr:
		if err := rename(next.RaftID, last, server, s); err != nil {
			return old, fmt.Errorf("transferring the state of server %d to server %d: %w", old.Server, server.ID, err)
		}
	default:
		return old, d.foreign(old, server.ID)
	}
	log.Info("a standalone server becomes a member of an ensemble", "server", server.ID, "as", string(next.RaftID))
	return next, next.Write(d.FS, d.Log)
}

// foreign returns the error for a directory that belongs to another server.
func (d Dirs) foreign(owner Identity, server uint64) error {
	return fmt.Errorf("%s holds the state of server %d, not of server %d: check myid and dataDir", d.Log, owner.Server, server)
}

// rename appends a configuration with this server as the only voter.
func rename(id raft.ServerID, last raft.Log, server Server, s Stores) error {
	term, err := s.Stable().GetUint64([]byte("CurrentTerm"))
	if err != nil && err.Error() != errNotFound {
		return err
	}
	only, err := server.Self()
	if err != nil {
		return err
	}
	only.ID = id
	return s.Logs().StoreLog(&raft.Log{
		Index: last.Index + 1, Term: max(term, last.Term), Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{only}}),
	})
}

// errNotFound is the text of the error that stable stores return, by Raft's
// convention, for a key that was never stored.
const errNotFound = "not found"

// storedConfiguration reads Raft's newest configuration and the end of the log from
// the stores.
func storedConfiguration(s Stores) (conf raft.Configuration, end raft.Log, err error) {
	snaps, err := s.Snapshots().List()
	if err != nil {
		return conf, end, err
	}
	if len(snaps) > 0 {
		conf = snaps[0].Configuration
		end.Index, end.Term = snaps[0].Index, snaps[0].Term
	}
	first, err := s.Logs().FirstIndex()
	if err != nil {
		return conf, end, err
	}
	last, err := s.Logs().LastIndex()
	if err != nil {
		return conf, end, err
	}
	var l raft.Log
	for i := max(first, 1); i <= last; i++ {
		if err := s.Logs().GetLog(i, &l); err != nil {
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
