package raftfsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/snapio"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// checkMembership returns an error for a membership that can't be decoded.
func checkMembership(state []byte) error {
	_, err := membership.ParseState(state)
	return err
}

// checkEntry returns an error if an entry from another server can't be stored or
// applied.
func (e *ensemble) checkEntry(l *raft.Log) error {
	if err := raftlog.CheckReceived(l); err != nil || l.Type != raft.LogCommand {
		return err
	}
	c := e.env.checkers.Get()
	defer e.env.checkers.Put(c)
	return c.Entry(l.Data, e.env.identity.ClusterID())
}

// checkSnapshot reads a snapshot from another server and returns an error if it can't be
// restored. It runs before the restore, because a restore discards the current state.
func (e *ensemble) checkSnapshot(q *raft.InstallSnapshotRequest, r io.Reader) error {
	c := snapio.NewReader(r)
	h, err := readSnapshotHeader(c)
	if err != nil {
		return err
	}
	switch own := e.env.identity.ClusterID(); {
	case own != (command.ClusterID{}) && h.cluster != own:
		return errors.New("it belongs to another ensemble")
	case h.index > q.LastLogIndex:
		return fmt.Errorf("it holds the state after entry %d, and is announced as ending at entry %d", h.index, q.LastLogIndex)
	}
	if h.config != nil {
		if _, err := membership.ParseState(h.config); err != nil {
			return fmt.Errorf("membership: %w", err)
		}
	}
	rows, err := h.sessions()
	if err != nil {
		return err
	}
	digest, err := tree.Scan(c)
	if err != nil {
		return err
	}
	if err := c.End(); err != nil {
		return err
	}
	if digest^rows != h.digest {
		return fmt.Errorf("the state has digest %#x, the snapshot says %#x", digest^rows, h.digest)
	}
	return nil
}

// sessions decodes the session table into a temporary table and returns its part of the
// digest.
func (h *snapshotHeader) sessions() (rows uint64, err error) {
	table := session.NewTable()
	if err := h.decodeSessions(table); err != nil {
		return 0, err
	}
	for row := range table.All {
		rows ^= rowDigest(row)
	}
	return rows, nil
}
