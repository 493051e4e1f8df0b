package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
)

// Last proves that a mirror has every write that the old ensemble acknowledged to a client. It
// is the receiver of the learner's connection, and passes on everything to the mirror's own.
//
// # The proof
//
// Let F be the moment from which no client is connected to an old server (see Fence). After F,
// we send two requests on the connection to the old leader L, of epoch e:
//
//   - closeSession of a session that doesn't exist. It changes nothing, but it is a transaction
//     B, which a quorum of the voters must log.
//   - sync, which L answers after every transaction that it had proposed before, hence after B.
//
// Claim: when SYNC arrives, we have every transaction T that was committed before F.
//
//  1. T has the epoch e. L numbers requests in the order of their arrival. It received B after
//     F, so T has a lower number. L sends us its commits in the order of the numbers, after it has
//     brought us up to date. So T arrived before B.
//  2. T has an earlier epoch. A leader begins with all transactions that were committed before
//     its epoch, and we had them when our state became exact.
//  3. T has a later epoch e'. Then a quorum followed the leader of e' before T was committed,
//     i.e. before F. A voter that follows e' doesn't acknowledge anything of e. But after F, a
//     quorum acknowledged B in e, and two quorums have a voter in common. So there is no such T.
//
// A sync alone would not prove it: a leader that has lost its quorum but hasn't noticed yet has
// no proposals, and answers immediately. Without B, case 3 is open.
//
// A client receives a reply only after its write was committed, so only for such T. After F, the
// ensemble may commit requests of clients that never receive a reply, for which both results are
// right. The leader may also expire sessions, and delete containers and TTL znodes. The mirror
// should have no transaction after F, since its own history begins with the state at B or later.
// Therefore Last ends the connection with ErrSealed at the first transaction after SYNC.
type Last struct {
	learner.Receiver
	// SyncProves says that a sync goes through the log of the old ensemble, as in zkgo. A quorum
	// commits the sync, so it serves as B.
	SyncProves bool

	mu      sync.Mutex
	zxid    int64 // newest passed on; 0: none on this connection
	barrier key   // of the closeSession; the zero key: not sent
	found   int64 // zxid of its transaction; 0: not committed yet
	sealed  bool
	proven  chan struct{} // closed when sealed
}

type key struct {
	session int64
	cxid    int32
}

// ErrSealed ends a connection on which Last has proved the last zxid.
var ErrSealed = errors.New("mirror: the last transaction of the old ensemble is already confirmed; later ones are rejected")

// Requester sends requests to the old leader. It is implemented by learner.Conn.
type Requester interface {
	Request(r learner.Request) error
}

var _ Requester = (*learner.Conn)(nil)

// Prove returns the last zxid once the mirror has the transactions up to it. It must be called
// after the fence is closed, on a connection with the Last as the receiver of Follow. Session is an
// id that no session has, and that no server of the old ensemble gives. The caller should cancel
// ctx when Follow ends; Prove may then be called again for another connection, with another Last.
func (l *Last) Prove(ctx context.Context, leader Requester, session int64) (zxid int64, err error) {
	const cxid = 1
	proven, err := l.begin(key{session, cxid})
	if err != nil {
		return 0, err
	}
	requests := []learner.Request{
		{Session: session, Cxid: cxid, Op: proto.OpCloseSession},
		{Session: session, Cxid: cxid, Op: proto.OpSync, Body: (&proto.SyncRequest{Path: "/"}).Append(nil)},
	}
	if l.SyncProves {
		requests = requests[1:]
	}
	for _, r := range requests {
		if err := leader.Request(r); err != nil {
			return 0, fmt.Errorf("mirror: to prove the last transaction: %w", err)
		}
	}
	select {
	case <-proven:
	case <-ctx.Done():
		return 0, fmt.Errorf("mirror: the old leader has not proved its last transaction; it may have lost its quorum: %w", context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.zxid, nil
}

// begin sets the request to wait for.
func (l *Last) begin(barrier key) (proven chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proven != nil {
		return nil, errors.New("mirror: the last transaction is proved once for each connection")
	}
	l.barrier, l.proven = barrier, make(chan struct{})
	return l.proven, nil
}

// Commit implements learner.Receiver.
func (l *Last) Commit(tx *zkfiles.Txn) error {
	session, cxid, zxid, op := tx.Session, tx.Cxid, tx.Zxid, tx.Type
	l.mu.Lock()
	sealed := l.sealed
	l.mu.Unlock()
	if sealed {
		return ErrSealed
	}
	if err := l.Receiver.Commit(tx); err != nil { // the transaction belongs to it now
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.zxid = zxid
	if op == proto.OpCloseSession && l.proven != nil && l.barrier == (key{session, cxid}) {
		l.found = zxid
	}
	return nil
}

// SyncDone implements learner.Receiver.
func (l *Last) SyncDone(session int64, cxid int32) error {
	ours, err := l.seal(key{session, cxid})
	if err == nil && !ours {
		err = l.Receiver.SyncDone(session, cxid)
	}
	return err
}

// seal ends the proof if the sync is ours.
func (l *Last) seal(sync key) (ours bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.proven == nil || l.sealed || l.barrier != sync:
		return false, nil
	case l.found == 0 && !l.SyncProves:
		return true, errors.New("mirror: the old leader answered a sync before the transaction that it had received first")
	}
	l.sealed = true
	close(l.proven)
	return true, nil
}
