package zkfiles

import (
	"encoding/binary"

	"github.com/zkgo/zkgo/proto"
)

// Java's random generator, and the number that ZooKeeper mixes into the seed.
const (
	lcgFactor      = 0x5DEECE66D
	lcgAddend      = 0xB
	lcgMask        = 1<<48 - 1
	passwordSecret = 0xB3415C00
)

// Password returns the password of a session of ZooKeeper. ZooKeeper stores
// none: it derives it from the id, and so a client that held a session there can
// go on with it here.
func Password(session int64) [proto.PasswordSize]byte {
	var p [proto.PasswordSize]byte
	s := (uint64(session) ^ passwordSecret ^ lcgFactor) & lcgMask
	for i := 0; i < len(p); i += 4 {
		s = (s*lcgFactor + lcgAddend) & lcgMask
		binary.LittleEndian.PutUint32(p[i:], uint32(s>>16))
	}
	return p
}
