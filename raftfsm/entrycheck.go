package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// A server stops at an entry that it can't decode: it must not skip the entry, because
// another server may be able to apply it. So an entry that no server can apply must not
// get into a log, neither in a leader's entry nor in a follower's run. The checks here
// decode like apply and change nothing. An entry that needs a newer version passes:
// apply reports the version that it needs.

// entryChecker decodes entries. It reuses its records.
type entryChecker struct {
	cmd      Command
	requests proto.Requests
}

// entryCheckers is a pool of checkers that all streams share.
type entryCheckers struct{ pool sync.Pool }

func (p *entryCheckers) get() *entryChecker {
	if c, ok := p.pool.Get().(*entryChecker); ok {
		return c
	}
	return new(entryChecker)
}

// put clears a checker, except for the capacity of IDs, and returns it to the pool.
func (p *entryCheckers) put(c *entryChecker) {
	clear(c.cmd.IDs[:cap(c.cmd.IDs)]) // they are parts of an entry
	*c = entryChecker{cmd: Command{IDs: c.cmd.IDs[:0]}}
	p.pool.Put(c)
}

// entry returns an error if an entry can't be applied in the ensemble with the given
// cluster id.
func (c *entryChecker) entry(data []byte, cluster clusterID) error {
	kind, err := entryKind(data)
	if err != nil {
		return err
	}
	if kind == entryLeaderStart {
		return checkLeaderStart(data, cluster)
	}
	var h batchHeader
	runs, err := h.decode(data)
	for err == nil && len(runs) > 0 {
		var r runHeader
		var commands []byte
		if commands, runs, err = r.decode(runs); err == nil {
			err = c.commands(commands, r.count)
		}
	}
	return err
}

func checkLeaderStart(data []byte, cluster clusterID) error {
	var s leaderStart
	if err := s.decode(data); err != nil {
		return err
	}
	if cluster != (clusterID{}) && s.cluster != cluster {
		return errors.New("it belongs to another ensemble")
	}
	if s.flags&flagConfig != 0 {
		if _, err := parseState(s.config); err != nil {
			return fmt.Errorf("membership: %w", err)
		}
	}
	return nil
}

// commands checks the commands of a run. A follower's run may have commands of any kind:
// the commands that it proposed as the leader go to the next leader.
func (c *entryChecker) commands(b []byte, count uint32) error {
	for i := range count {
		rest, err := c.cmd.decode(b)
		if err == nil {
			err = c.body()
		}
		if err != nil {
			return fmt.Errorf("command %d of %d: %w", i+1, count, err)
		}
		b = rest
	}
	if len(b) != 0 {
		return fmt.Errorf("%d bytes after its %d commands", len(b), count)
	}
	return nil
}

// body checks the body of the command decoded last, like applyCommand.
func (c *entryChecker) body() error {
	b := c.cmd.Body
	switch c.cmd.Kind {
	case KindRequest:
		_, err := decodeRequest(&c.requests, c.cmd.Op, b)
		return err
	case KindReap:
		r := proto.AliasReader(b)
		var reap tree.Reap
		reap.Decode(&r)
		return r.Err()
	case KindReconfigRefused:
		_, err := refusalCode(b)
		return err
	case KindRaise:
		if len(b) != 4 {
			return errors.New("a level of another size than 4 bytes")
		}
	case KindMembership:
		r := proto.AliasReader(b)
		from, to := r.Buffer(), r.Buffer()
		if err := r.Err(); err != nil {
			return err
		}
		_, err := parseState(from)
		if err == nil {
			_, err = parseState(to)
		}
		return err
	case KindRestoreBegin, KindRestoreChunk, KindRestoreCommit, KindRestoreAbort:
		if len(b) < 8 {
			return errors.New("a restore without an id")
		}
	case KindReconfigDone:
		return errUnknownCommand // applyCommand refuses it, too
	}
	return nil
}

// refusalCode reads the body of a KindReconfigRefused.
func refusalCode(b []byte) (proto.Code, error) {
	if len(b) != 4 {
		return 0, errors.New("a refusal without a code")
	}
	code := proto.Code(int32(binary.BigEndian.Uint32(b)))
	if code != proto.ErrReconfigInProgress && code != proto.ErrNewConfigNoQuorum {
		return 0, fmt.Errorf("a reconfig refused with %v", code)
	}
	return code, nil
}

// checkEntry returns an error if an entry from another server can't be stored or
// applied.
func (e *ensemble) checkEntry(l *raft.Log) error {
	if err := raftlog.CheckReceived(l); err != nil || l.Type != raft.LogCommand {
		return err
	}
	c := e.checkers.get()
	defer e.checkers.put(c)
	return c.entry(l.Data, e.n.identity.clusterID())
}

// checkSnapshot reads a snapshot from another server and returns an error if it can't be
// restored. It runs before the restore, because a restore discards the current state.
func (e *ensemble) checkSnapshot(q *raft.InstallSnapshotRequest, r io.Reader) error {
	c := newChunkReader(r)
	h, err := readSnapshotHeader(c)
	if err != nil {
		return err
	}
	switch own := e.n.identity.clusterID(); {
	case own != (clusterID{}) && h.cluster != own:
		return errors.New("it belongs to another ensemble")
	case h.index > q.LastLogIndex:
		return fmt.Errorf("it holds the state after entry %d, and is announced as ending at entry %d", h.index, q.LastLogIndex)
	}
	if h.config != nil {
		if _, err := parseState(h.config); err != nil {
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
	if err := c.end(); err != nil {
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

// standing returns the state that incoming Raft messages are checked against.
func (e *ensemble) standing() quorum.Standing {
	r := e.n.raftNow()
	if r == nil {
		return quorum.Standing{}
	}
	s := quorum.Standing{Committed: r.CommitIndex(), Leads: r.State() == raft.Leader}
	s.Term = r.CurrentTerm()
	return s
}

// termOf returns the term of an entry in the log.
func (e *ensemble) termOf(index uint64) (uint64, bool) {
	var l raft.Log
	if err := e.n.stores.Logs().GetLog(index, &l); err != nil {
		return 0, false
	}
	return l.Term, true
}
