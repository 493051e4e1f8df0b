package zktxn

import (
	"encoding/binary"

	"github.com/zkgo/zkgo/proto"
)

// Java's random number generator, and the constant that ZooKeeper mixes into the
// seed.
const (
	lcgFactor      = 0x5DEECE66D
	lcgAddend      = 0xB
	lcgMask        = 1<<48 - 1
	passwordSecret = 0xB3415C00
)

// Password returns the password of a ZooKeeper session. ZooKeeper doesn't store
// passwords but derives them from the id, so a client can continue its ZooKeeper
// session on zkgo.
func Password(session int64) [proto.PasswordSize]byte {
	var p [proto.PasswordSize]byte
	s := (uint64(session) ^ passwordSecret ^ lcgFactor) & lcgMask
	for i := 0; i < len(p); i += 4 {
		s = (s*lcgFactor + lcgAddend) & lcgMask
		binary.LittleEndian.PutUint32(p[i:], uint32(s>>16))
	}
	return p
}

// PasswordOf returns the password of the session with the given id.
func (c *CreateSessionTxn) PasswordOf(session int64) (p [16]byte) {
	if c.Password == nil {
		return Password(session)
	}
	copy(p[:], c.Password)
	return p
}
