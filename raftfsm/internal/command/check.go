package command

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// A server stops at an entry that it can't decode: it must not skip the entry, because
// another server may be able to apply it. We therefore keep an entry that no server can
// apply out of the log, whether a leader or a follower proposes it. The checks here
// decode like apply and change nothing. An entry that needs a newer version passes:
// apply reports the version that it needs.

// Checker decodes entries. It reuses its records.
type Checker struct {
	cmd        Command
	requests   proto.Requests
	membership func(state []byte) error
}

// Checkers is a pool of checkers. It is safe for concurrent use.
type Checkers struct {
	// Membership returns an error for a membership that can't be decoded.
	Membership func(state []byte) error

	pool sync.Pool
}

// Get returns a checker.
func (p *Checkers) Get() *Checker {
	if c, ok := p.pool.Get().(*Checker); ok {
		return c
	}
	return &Checker{membership: p.Membership}
}

// Put clears a checker, except for the capacity of IDs, and returns it to the pool.
func (p *Checkers) Put(c *Checker) {
	clear(c.cmd.IDs[:cap(c.cmd.IDs)]) // they are parts of an entry
	*c = Checker{cmd: Command{IDs: c.cmd.IDs[:0]}, membership: p.Membership}
	p.pool.Put(c)
}

// Entry returns an error if an entry can't be applied in the ensemble with the given
// cluster id.
func (c *Checker) Entry(data []byte, cluster ClusterID) error {
	kind, err := EntryKind(data)
	if err != nil {
		return err
	}
	if kind == EntryLeaderStart {
		return c.leaderStart(data, cluster)
	}
	var h BatchHeader
	runs, err := h.Decode(data)
	for err == nil && len(runs) > 0 {
		var r RunHeader
		var commands []byte
		if commands, runs, err = r.Decode(runs); err == nil {
			err = c.Commands(commands, r.Count)
		}
	}
	return err
}

// leaderStart checks the first entry of a leadership.
func (c *Checker) leaderStart(data []byte, cluster ClusterID) error {
	var s LeaderStart
	if err := s.Decode(data); err != nil {
		return err
	}
	if cluster != (ClusterID{}) && s.Cluster != cluster {
		return errors.New("it belongs to another ensemble")
	}
	if s.Flags&FlagConfig != 0 {
		if err := c.membership(s.Config); err != nil {
			return fmt.Errorf("membership: %w", err)
		}
	}
	return nil
}

// Commands checks the commands of a run. A follower's run may have commands of any kind:
// the commands that it proposed as the leader go to the next leader.
func (c *Checker) Commands(b []byte, count uint32) error {
	for i := range count {
		rest, err := c.cmd.Decode(b)
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
func (c *Checker) body() error {
	b := c.cmd.Body
	switch c.cmd.Kind {
	case KindRequest:
		_, err := DecodeRequest(&c.requests, c.cmd.Op, b)
		return err
	case KindReap:
		r := proto.AliasReader(b)
		var reap tree.Reap
		reap.Decode(&r)
		return r.Err()
	case KindReconfigRefused:
		_, err := RefusalCode(b)
		return err
	case KindRaise:
		if len(b) != 4 {
			return errors.New("a level that does not have 4 bytes")
		}
	case KindMembership:
		r := proto.AliasReader(b)
		from, to := r.Buffer(), r.Buffer()
		if err := r.Err(); err != nil {
			return err
		}
		err := c.membership(from)
		if err == nil {
			err = c.membership(to)
		}
		return err
	case KindRestoreBegin, KindRestoreChunk, KindRestoreCommit, KindRestoreAbort, KindRestoreSessions, KindMirrorBegin:
		if len(b) < 8 {
			return errors.New("a restore without an id")
		}
	case KindReconfigDone:
		return ErrUnknownCommand // applyCommand refuses it, too
	}
	return nil
}

// RefusalCode reads the body of a KindReconfigRefused.
func RefusalCode(b []byte) (proto.Code, error) {
	if len(b) != 4 {
		return 0, errors.New("a refusal without a code")
	}
	code := proto.Code(int32(binary.BigEndian.Uint32(b)))
	if code != proto.ErrReconfigInProgress && code != proto.ErrNewConfigNoQuorum {
		return 0, fmt.Errorf("a reconfig refused with %v", code)
	}
	return code, nil
}

// DecodeRequest decodes the body of op; the returned record aliases body. Servers
// propose only requests that they have decoded, so an error means that the entry is
// damaged.
func DecodeRequest(q *proto.Requests, op proto.Op, body []byte) (proto.Record, error) {
	if !op.Transaction() {
		return nil, fmt.Errorf("%v is not a write", op)
	}
	return q.Decode(op, body)
}
