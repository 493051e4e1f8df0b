package zab

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/proto"
)

// AuthMagic begins each QuorumAuthPacket. ZooKeeper's source has −0xa0dbcafecafe1234, which
// overflows in Java to this value.
const AuthMagic int64 = 0x5f2435013501edcc

// Values of a QuorumAuthPacket's status.
const (
	AuthInProgress = 0
	AuthSuccess    = 1
	AuthError      = -1
)

// maxToken limits a token of DIGEST-MD5 in bytes.
const maxToken = 64 << 10

// AppendToken appends a QuorumAuthPacket.
func AppendToken(b []byte, status int32, token []byte) []byte {
	return proto.AppendBuffer(proto.AppendInt(proto.AppendLong(b, AuthMagic), status), token)
}

// NoTokenError reports that the other side doesn't speak SASL.
type NoTokenError struct{ Magic uint64 }

// Error implements error.
func (e *NoTokenError) Error() string { return fmt.Sprintf("no SASL token (magic %#x)", e.Magic) }

// ReadToken reads a QuorumAuthPacket.
func ReadToken(r *bufio.Reader) (status int32, token []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	if magic := binary.BigEndian.Uint64(head[:]); magic != uint64(AuthMagic) {
		return 0, nil, &NoTokenError{magic}
	}
	if status, err = readInt(r); err != nil {
		return 0, nil, err
	}
	token, err = ReadBuffer(r, maxToken)
	return status, token, err
}
