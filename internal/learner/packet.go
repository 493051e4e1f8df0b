package learner

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
)

// kind is the type of a packet. The names and numbers are those in ZooKeeper's class Leader.
type kind int32

const (
	kindRequest           kind  = 1
	kindProposal          kind  = 2
	kindAck               kind  = 3
	kindCommit            kind  = 4
	kindPing              kind  = 5
	kindRevalidate        kind  = 6
	kindSync              kind  = 7
	kindInform            kind  = 8
	kindCommitAndActivate kind  = 9
	kindNewLeader         kind  = 10
	kindUpToDate          kind  = 12
	kindDiff              kind  = 13
	kindTrunc             kind  = 14
	kindSnap              kind  = 15
	kindObserverInfo      kind  = 16
	kindLeaderInfo        kind  = 17
	kindAckEpoch          kind  = 18
	kindInformAndActivate kind  = 19
	protocolVersion       int32 = 0x10000
	snapshotSignature           = "BenWasHere"
	maxIdentities               = 1 << 10
	packetOverhead              = 64 << 10
)

var kindNames = map[kind]string{
	kindRequest: "REQUEST", kindProposal: "PROPOSAL", kindAck: "ACK", kindCommit: "COMMIT", kindPing: "PING",
	kindRevalidate: "REVALIDATE", kindSync: "SYNC", kindInform: "INFORM", kindCommitAndActivate: "COMMITANDACTIVATE",
	kindNewLeader: "NEWLEADER", kindUpToDate: "UPTODATE", kindDiff: "DIFF", kindTrunc: "TRUNC", kindSnap: "SNAP",
	kindObserverInfo: "OBSERVERINFO", kindLeaderInfo: "LEADERINFO", kindAckEpoch: "ACKEPOCH", kindInformAndActivate: "INFORMANDACTIVATE",
}

// String returns ZooKeeper's name of the type.
func (k kind) String() string {
	if name := kindNames[k]; name != "" {
		return name
	}
	return fmt.Sprintf("packet type %d", int32(k))
}

// packet is a QuorumPacket of zookeeper.jute without its identities. A leader sends none that
// an observer needs.
type packet struct {
	kind kind
	zxid int64
	data []byte
}

// errTooLong is the error for a packet whose data are longer than the limit.
var errTooLong = errors.New("longer than jute.maxbuffer allows: if the leader is right, set jute.maxbuffer to the value that its ensemble uses")

// readPacket reads a packet whose data have at most most bytes.
func readPacket(r *bufio.Reader, most int) (p packet, err error) {
	var head [4 + 8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, err
	}
	p.kind, p.zxid = kind(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint64(head[4:]))
	if p.data, err = readBuffer(r, most); err != nil {
		return p, fmt.Errorf("the data of %v: %w", p.kind, err)
	}
	if err := skipIdentities(r, most); err != nil {
		return p, fmt.Errorf("the identities of %v: %w", p.kind, err)
	}
	return p, nil
}

// readBuffer reads a jute buffer. Null is nil.
func readBuffer(r *bufio.Reader, most int) ([]byte, error) {
	n, err := readInt(r)
	switch {
	case err != nil || n == -1:
		return nil, err
	case n < 0:
		return nil, fmt.Errorf("a negative length, %d", n)
	case int(n) > most:
		return nil, fmt.Errorf("%d bytes, %w", n, errTooLong)
	}
	b, err := zkfiles.ReadUpTo(r, int(n))
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
			if _, err := readBuffer(r, most); err != nil {
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

// appendPacket appends a packet with the identities of a client. The list may be empty, but
// must not be null: ZooKeeper's request processors don't check for null.
func appendPacket(b []byte, p packet, identities ...proto.ID) []byte {
	b = proto.AppendInt(b, int32(p.kind))
	b = proto.AppendLong(b, p.zxid)
	b = proto.AppendBuffer(b, p.data)
	b = proto.AppendInt(b, int32(len(identities)))
	for _, id := range identities {
		b = proto.AppendString(proto.AppendString(b, id.Scheme), id.ID)
	}
	return b
}

// epochOf returns the epoch of a zxid.
func epochOf(zxid int64) int64 { return zxid >> 32 }
