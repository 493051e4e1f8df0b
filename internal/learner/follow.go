package learner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
)

// Receiver handles the messages of the leader. Follow calls its methods one after the other, and
// ends with the first error.
type Receiver interface {
	// Snapshot replaces everything with a state. The state has its Zxid set. Until Synced, it may
	// already contain changes of transactions that follow.
	Snapshot(s *zkfiles.State) error
	// Commit adds a committed transaction, which belongs to the receiver.
	Commit(tx *zkfiles.Txn) error
	// Synced reports that the state is the ensemble's at the newest zxid.
	Synced() error
	// Ping reports a sign of life from the leader, and the newest zxid that it has
	// proposed. The difference to the newest zxid we have is the lag.
	Ping(proposed int64, at time.Time) error
	// Revalidated answers a Conn.Revalidate: whether the session is alive. If it is, its
	// client is ours from now on. The answers come in the order of the questions.
	Revalidated(session int64, valid bool) error
	// SyncDone answers a sync that was sent with Conn.Request. Everything that the leader
	// had proposed before that has been committed, and delivered to Commit. The answers
	// come in the order of the requests.
	SyncDone(session int64, cxid int32) error
}

// ErrTrunc is the error when the leader asks us to discard transactions.
var ErrTrunc = errors.New("the leader has fewer transactions than we were given before: the ensemble has lost committed transactions, or it is another ensemble")

// follower is the state of Follow.
type follower struct {
	*Conn
	to      Receiver
	zxid    int64          // of the newest transaction delivered
	floor   int64          // of the snapshot that this connection sent; 0: none
	pending []*zkfiles.Txn // proposals without a commit
	synced  bool
	touched []Touch // reused
}

// Follow delivers everything the leader sends after zxid, which must be the value given to
// Dial, until the connection or the receiver fails. It returns the error.
func (c *Conn) Follow(zxid int64, to Receiver) error {
	f := follower{Conn: c, to: to, zxid: zxid}
	err := f.begin()
	for err == nil {
		err = f.next()
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the leader closed the connection")
	}
	return fmt.Errorf("learner: %s: %w", c.addr, err)
}

// begin handles the first packet, which says how the leader brings us up to date.
func (f *follower) begin() error {
	p, err := f.readPacket()
	if err != nil {
		return err
	}
	switch p.Kind {
	case zab.KindDiff:
		if p.Zxid < f.zxid {
			return fmt.Errorf("%w: DIFF up to %#x, ours is %#x", ErrTrunc, p.Zxid, f.zxid)
		}
	case zab.KindSnap:
		return f.snapshot(p.Zxid)
	case zab.KindTrunc:
		return fmt.Errorf("%w: TRUNC to %#x, ours is %#x", ErrTrunc, p.Zxid, f.zxid)
	default:
		return fmt.Errorf("the leader began with %v instead of DIFF or SNAP", p.Kind)
	}
	return nil
}

// snapshot reads the state that follows a SNAP.
func (f *follower) snapshot(zxid int64) error {
	state, err := zkfiles.ReadBody("snapshot from "+f.addr, f.r, f.cfg.Policy, f.cfg.Limits)
	if err != nil {
		return err
	}
	signature, err := zab.ReadBuffer(f.r, len(zab.SnapshotSignature))
	switch {
	case err != nil:
		return fmt.Errorf("the snapshot's signature: %w", err)
	case string(signature) != zab.SnapshotSignature:
		return fmt.Errorf("the snapshot's signature is %q instead of %q", signature, zab.SnapshotSignature)
	}
	if f.zkgo {
		if err := f.passwords(state); err != nil {
			return err
		}
	}
	state.Zxid, f.zxid, f.floor = zxid, zxid, zxid
	return f.to.Snapshot(state)
}

// passwords reads the passwords of the sessions, which follow the snapshot of a zkgo server.
func (f *follower) passwords(state *zkfiles.State) error {
	state.Passwords = make(map[int64][proto.PasswordSize]byte, len(state.Sessions))
	for {
		p, err := f.readPacket()
		switch {
		case err != nil:
			return err
		case p.Kind != zab.KindPasswords || len(p.Data)%zab.PasswordSize != 0:
			return fmt.Errorf("%v with %d bytes instead of the passwords of the sessions", p.Kind, len(p.Data))
		}
		for b := p.Data; len(b) > 0; b = b[zab.PasswordSize:] {
			id := int64(binary.BigEndian.Uint64(b))
			if _, is := state.Sessions[id]; !is {
				return fmt.Errorf("a password of session 0x%x, which the snapshot does not have", uint64(id))
			}
			state.Passwords[id] = [proto.PasswordSize]byte(b[8:])
		}
		if len(p.Data) != zab.PasswordsSize {
			return nil
		}
	}
}

// next handles one packet.
func (f *follower) next() error {
	p, err := f.readPacket()
	if err != nil {
		return err
	}
	switch p.Kind {
	case zab.KindProposal:
		return f.propose(p.Data)
	case zab.KindCommit, zab.KindCommitAndActivate:
		return f.commit(p.Zxid)
	case zab.KindInform:
		return f.inform(p.Data)
	case zab.KindInformAndActivate:
		return f.inform(p.Data[min(len(p.Data), leaderIDSize):])
	case zab.KindNewLeader:
		return f.newLeader(&p)
	case zab.KindUpToDate:
		return f.upToDate()
	case zab.KindPing:
		return f.ping(&p)
	case zab.KindSync:
		return f.syncDone()
	case zab.KindRevalidate:
		return f.revalidated(p.Data)
	default:
		return fmt.Errorf("unexpected %v at zxid %#x", p.Kind, p.Zxid)
	}
}

// leaderIDSize is the size of the suggested leader's id before the transaction in
// INFORMANDACTIVATE.
const leaderIDSize = 8

// maxPending limits the proposals without a commit. A leader sends them in pairs.
const maxPending = 1 << 16

// propose keeps a transaction until its commit.
func (f *follower) propose(data []byte) error {
	if f.synced || len(f.pending) == maxPending {
		return errors.New("unexpected PROPOSAL: the leader believes that this server is a voter")
	}
	tx, err := decode(data)
	if err != nil {
		return err
	}
	f.pending = append(f.pending, tx)
	return nil
}

// commit delivers the oldest proposal.
func (f *follower) commit(zxid int64) error {
	if len(f.pending) == 0 || f.pending[0].Zxid != zxid {
		return fmt.Errorf("COMMIT of %#x, which is not the next proposal", zxid)
	}
	tx := f.pending[0]
	f.pending = f.pending[1:]
	return f.deliver(tx)
}

func (f *follower) inform(data []byte) error {
	tx, err := decode(data)
	if err != nil {
		return err
	}
	return f.deliver(tx)
}

// deliver passes on a transaction if it is the next one. The zxids of an epoch have no gaps,
// except for requests that some versions number but don't propose. The leader chooses our first
// transaction a moment before it chooses the zxid of the snapshot, so the first transactions may be
// in the snapshot.
func (f *follower) deliver(tx *zkfiles.Txn) error {
	switch {
	case tx.Zxid <= f.floor && !f.synced:
		return nil
	case tx.Zxid <= f.zxid:
		return fmt.Errorf("transaction %#x comes after %#x", tx.Zxid, f.zxid)
	case zab.EpochOf(tx.Zxid) > f.epoch:
		return fmt.Errorf("transaction %#x is of a later epoch than the leader's, %d", tx.Zxid, f.epoch)
	}
	f.zxid = tx.Zxid
	return f.to.Commit(tx)
}

// newLeader acknowledges everything that the leader has sent so far, and keeps the
// configuration that it sends.
func (f *follower) newLeader(p *zab.Packet) error {
	f.send.Lock()
	defer f.send.Unlock()
	f.members = string(p.Data)
	return f.sendLocked(zab.Packet{Kind: zab.KindAck, Zxid: p.Zxid})
}

// upToDate marks the end of the synchronization. The leader queues UPTODATE after it has read
// our ACK of NEWLEADER, which we send after we have read the snapshot. Whatever its snapshot
// contains too early was committed, and therefore queued for us, before that. From now on, the
// leader accepts requests.
func (f *follower) upToDate() error {
	if f.synced || len(f.pending) > 0 {
		return fmt.Errorf("unexpected UPTODATE (%d transactions without COMMIT)", len(f.pending))
	}
	f.synced = true
	if err := f.open(); err != nil {
		return err
	}
	return f.to.Synced()
}

// open acknowledges UPTODATE, and lets requests follow.
func (c *Conn) open() error {
	c.send.Lock()
	defer c.send.Unlock()
	c.timeout = c.cfg.SilenceTimeout
	if err := c.sendLocked(zab.Packet{Kind: zab.KindAck, Zxid: c.epoch << 32}); err != nil {
		return err
	}
	c.asked.open = true
	return nil
}

// ping answers a ping.
func (f *follower) ping(p *zab.Packet) error {
	if f.touched = f.touched[:0]; f.cfg.Touched != nil {
		f.touched = f.cfg.Touched(f.touched)
	}
	if err := f.sendTouched(p.Zxid, f.touched); err != nil {
		return err
	}
	return f.to.Ping(p.Zxid, time.Now())
}

// decode decodes a transaction, which keeps data.
func decode(data []byte) (*zkfiles.Txn, error) {
	tx, err := zkfiles.DecodeTxn(data)
	if err == nil {
		tx.Raw = data
	}
	return tx, err
}
