package zab

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/proto"
)

// Kind is the type of a packet. The names and numbers are those in ZooKeeper's class Leader.
type Kind int32

// The types.
const (
	KindRequest           Kind = 1
	KindProposal          Kind = 2
	KindAck               Kind = 3
	KindCommit            Kind = 4
	KindPing              Kind = 5
	KindRevalidate        Kind = 6
	KindSync              Kind = 7
	KindInform            Kind = 8
	KindCommitAndActivate Kind = 9
	KindNewLeader         Kind = 10
	KindFollowerInfo      Kind = 11
	KindUpToDate          Kind = 12
	KindDiff              Kind = 13
	KindTrunc             Kind = 14
	KindSnap              Kind = 15
	KindObserverInfo      Kind = 16
	KindLeaderInfo        Kind = 17
	KindAckEpoch          Kind = 18
	KindInformAndActivate Kind = 19
	// KindPasswords follows a snapshot that one zkgo sends another (Extension).
	KindPasswords Kind = 1000
)

const (
	// ProtocolVersion is the version of the protocol.
	ProtocolVersion int32 = 0x10000
	// SnapshotSignature ends a snapshot.
	SnapshotSignature = "BenWasHere"
	// PacketOverhead is how much longer than a client's request the data of a packet may be.
	PacketOverhead = 64 << 10

	maxIdentities = 1 << 10
)

var kindNames = map[Kind]string{
	KindRequest: "REQUEST", KindProposal: "PROPOSAL", KindAck: "ACK", KindCommit: "COMMIT", KindPing: "PING",
	KindRevalidate: "REVALIDATE", KindSync: "SYNC", KindInform: "INFORM", KindCommitAndActivate: "COMMITANDACTIVATE",
	KindNewLeader: "NEWLEADER", KindFollowerInfo: "FOLLOWERINFO", KindUpToDate: "UPTODATE", KindDiff: "DIFF", KindTrunc: "TRUNC", KindSnap: "SNAP",
	KindObserverInfo: "OBSERVERINFO", KindLeaderInfo: "LEADERINFO", KindAckEpoch: "ACKEPOCH", KindInformAndActivate: "INFORMANDACTIVATE",
	KindPasswords: "PASSWORDS",
}

// String returns ZooKeeper's name of the type.
func (k Kind) String() string {
	if name := kindNames[k]; name != "" {
		return name
	}
	return fmt.Sprintf("packet type %d", int32(k))
}

// Packet is a QuorumPacket of zookeeper.jute without its identities. A leader sends none that
// an observer needs.
type Packet struct {
	Kind Kind
	Zxid int64
	Data []byte
}

// errTooLong is the error for a packet with more data than the limit.
var errTooLong = errors.New("longer than jute.maxbuffer allows: if the leader is right, set jute.maxbuffer to the value that its ensemble uses")

// ReadPacket reads a packet with at most most bytes of data.
func ReadPacket(r *bufio.Reader, most int) (p Packet, err error) {
	var head [4 + 8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, err
	}
	p.Kind, p.Zxid = Kind(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint64(head[4:]))
	if p.Data, err = ReadBuffer(r, most); err != nil {
		return p, fmt.Errorf("the data of %v: %w", p.Kind, err)
	}
	if err := skipIdentities(r, most); err != nil {
		return p, fmt.Errorf("the identities of %v: %w", p.Kind, err)
	}
	return p, nil
}

// ReadBuffer reads a jute buffer. Null is nil.
func ReadBuffer(r *bufio.Reader, most int) ([]byte, error) {
	n, err := readInt(r)
	switch {
	case err != nil || n == -1:
		return nil, err
	case n < 0:
		return nil, fmt.Errorf("a negative length, %d", n)
	case int(n) > most:
		return nil, fmt.Errorf("%d bytes, %w", n, errTooLong)
	}
	b, err := ReadUpTo(r, int(n))
	if err == nil && len(b) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// skipIdentities reads the identities of a packet.
func skipIdentities(r *bufio.Reader, most int) error {
	n, err := readInt(r)
	if err != nil {
		return err
	}
	if n > maxIdentities {
		return fmt.Errorf("%d of them", n)
	}
	for ; n > 0; n-- {
		for range 2 { // scheme and id
			if _, err := ReadBuffer(r, most); err != nil {
				return err
			}
		}
	}
	return nil
}

func readInt(r *bufio.Reader) (int32, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, unexpected(err)
	}
	return int32(binary.BigEndian.Uint32(b[:])), nil
}

// unexpected turns io.EOF within a packet into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// AppendPacket appends a packet with the identities of a client. The list may be empty, but
// must not be null: ZooKeeper's request processors don't check for null.
func AppendPacket(b []byte, p Packet, identities ...proto.ID) []byte {
	b = proto.AppendInt(b, int32(p.Kind))
	b = proto.AppendLong(b, p.Zxid)
	b = proto.AppendBuffer(b, p.Data)
	b = proto.AppendInt(b, int32(len(identities)))
	for _, id := range identities {
		b = proto.AppendString(proto.AppendString(b, id.Scheme), id.ID)
	}
	return b
}

// EpochOf returns the epoch of a zxid.
func EpochOf(zxid int64) int64 { return zxid >> 32 }
