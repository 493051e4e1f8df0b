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

// Applying stops a server at an entry that it cannot take apart: it must not skip
// it, as another server may be able to. So an entry that no server could apply must
// not get into a log, neither as an entry of a leader nor as a run of a follower.
// The checks here decode as applying does and change nothing. An entry that only a
// newer version can apply passes: applying says which version it takes.

// entryChecker decodes entries, again and again into the same records.
type entryChecker struct {
	cmd      Command
	requests requests
}

// entryCheckers are shared by all streams.
type entryCheckers struct{ pool sync.Pool }

func (p *entryCheckers) get() *entryChecker {
	if c, ok := p.pool.Get().(*entryChecker); ok {
		return c
	}
	return new(entryChecker)
}

// put takes a checker back, which no longer refers to the entry.
func (p *entryCheckers) put(c *entryChecker) {
	*c = entryChecker{cmd: Command{IDs: c.cmd.IDs[:0]}}
	p.pool.Put(c)
}

// entry says why an entry of the ensemble with the given id could not be applied.
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

// commands checks the commands of a run. A follower's may be of any kind: what it
// proposed when it led goes to the next leader.
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

// body checks the body of the command that was decoded last, as applyCommand
// reads it.
func (c *entryChecker) body() error {
	b := c.cmd.Body
	switch c.cmd.Kind {
	case KindRequest:
		_, err := c.requests.decode(c.cmd.Op, b)
		return err
	case KindReap:
		r := proto.AliasReader(b)
		c.requests.reap.Decode(&r)
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
		return errUnknownCommand // no command, as applying sees it
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

// checkEntry says why an entry that another server sends could not be stored or
// applied.
func (e *ensemble) checkEntry(l *raft.Log) error {
	if err := raftlog.CheckReceived(l); err != nil || l.Type != raft.LogCommand {
		return err
	}
	c := e.checkers.get()
	defer e.checkers.put(c)
	return c.entry(l.Data, e.n.identity.clusterID())
}

// checkSnapshot reads a snapshot that another server sends and says why it could
// not be restored: restoring gives up the state that is there.
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

// sessions decodes the table of sessions, into none that is in use, and returns
// its part of the digest.
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

// standing is what messages of Raft are compared with.
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
