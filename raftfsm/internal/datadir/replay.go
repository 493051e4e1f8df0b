package datadir

import (
	"cmp"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// Position describes how far the state in a server's directories reaches.
type Position struct {
	LogDir   string
	Server   uint64
	Cluster  string // id of the ensemble, hexadecimal
	Term     uint64 // of the newest entry in the log
	Index    uint64 // of the newest entry in the log
	Zxid     int64  // after all entries are applied
	Znodes   int
	Sessions int
	Voters   []uint64 // the servers with a vote, by the newest entry that lists them
}

// Compare compares two servers of an ensemble in the same way as Raft. The server with
// the larger position has all acknowledged entries of the other server.
func (p *Position) Compare(o *Position) int {
	return cmp.Or(cmp.Compare(p.Term, o.Term), cmp.Compare(p.Index, o.Index))
}

// Replay passes the log entries after the newest snapshot to apply. It returns the
// position at the end of the log, but without the fields that come from the state.
func (d Dirs) Replay(id Identity, s Stores, apply func(index uint64, data []byte) error) (p Position, err error) {
	p = Position{LogDir: d.Log, Server: id.Server, Cluster: id.Cluster}
	var conf raft.Configuration
	snaps, err := s.Snapshots().List()
	if err != nil {
		return p, err
	}
	if len(snaps) > 0 {
		conf, p.Term, p.Index = snaps[0].Configuration, snaps[0].Term, snaps[0].Index
	}
	first, err := s.Logs().FirstIndex()
	if err != nil {
		return p, err
	}
	last, err := s.Logs().LastIndex()
	if err != nil {
		return p, err
	}
	for i := max(first, p.Index+1, 1); i <= last; i++ {
		var l raft.Log
		if err := s.Logs().GetLog(i, &l); err != nil {
			return p, err
		}
		p.Term, p.Index = l.Term, l.Index
		switch l.Type {
		case raft.LogCommand:
			if err := apply(l.Index, l.Data); err != nil {
				return p, fmt.Errorf("%s: log entry %d: %w", d.Log, l.Index, err)
			}
		case raft.LogConfiguration:
			conf = raft.DecodeConfiguration(l.Data)
		}
	}
	for _, server := range conf.Servers {
		if server.Suffrage == raft.Voter {
			p.Voters = append(p.Voters, membership.ServerOf(server.ID))
		}
	}
	return p, nil
}
