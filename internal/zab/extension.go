package zab

import (
	"encoding/binary"

	"github.com/zkgo/zkgo/proto"
)

// Extension follows the version in LEADERINFO, where ZooKeeper's learners ignore it, if a zkgo
// server sends it. An observer that appends it to the epoch in ACKEPOCH receives the passwords of
// the sessions: zkgo's are random, and ZooKeeper's follow from the ids. A createSession then has
// the password after the timeout, and after a snapshot come packets of KindPasswords: for each
// session its id and its password, in packets of PasswordsSize bytes. The first packet of another
// size is the last one.
const Extension = "zkgo1"

// ExtensionOfMirror is the Extension in LEADERINFO of a server that mirrors another ensemble. It
// can't prove which transaction is the newest.
const ExtensionOfMirror = "zkgo1m"

// PasswordSize is the size of an id and a password, and PasswordsSize the size of a packet's data
// if it is full.
const (
	PasswordSize  = 8 + proto.PasswordSize
	PasswordsSize = 4096 * PasswordSize
)

// Sizes in a transaction (zookeeper.jute: TxnHeader, CreateSessionTxn).
const (
	headerSize  = 8 + 4 + 8 + 8 + 4
	typeAt      = headerSize - 4
	timeoutSize = 4
	digestSize  = 4 + 8
)

// WithoutPassword returns a transaction as ZooKeeper encodes it: a createSession without a
// password. It doesn't change txn.
func WithoutPassword(txn []byte) []byte {
	const head, whole = headerSize + timeoutSize, headerSize + timeoutSize + proto.PasswordSize
	if len(txn) < whole || proto.Op(int32(binary.BigEndian.Uint32(txn[typeAt:]))) != proto.OpCreateSession {
		return txn
	}
	return append(append(make([]byte, 0, head+digestSize), txn[:head]...), txn[whole:]...)
}
