package tree

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/zkgo/zkgo/tree/internal/arena"
)

// statBlock is the length of the part of the stat that goes into a digest, with statPad
// bytes of padding in front. We pad because the fast path of crc32 needs 64 bytes or more.
const (
	statPad   = 4
	statBlock = statPad + 60
)

// Digest returns ZooKeeper's tree digest, version 2: the sum of the CRC-32 of
// path, data and stat over all nodes except those below /zookeeper.
func (t *Tree) Digest() uint64 { return t.totals.digest }

// FullDigest returns a digest of the whole tree, including /zookeeper, access
// control lists and the newest zxid. Equal trees have equal digests on every server
// and after every restart.
func (t *Tree) FullDigest() uint64 { return mix(t.totals.full + mix(uint64(t.zxid))) }

// count adds n to the totals.
func (t *store) count(n *node) {
	own, full := t.digests(n)
	t.totals.digest += own
	t.totals.full += full
	t.totals.dataSize += int64(len(n.Path())) + n.State().DataLen()
	if len(t.measured.subtrees) > 0 {
		t.measured.follow(n.Path(), 1, n.State().DataLen())
	}
	t.noteLength(int32(n.State().DataLen()))
}

// uncount subtracts n from the totals.
func (t *store) uncount(n *node) {
	own, full := t.digests(n)
	t.totals.digest -= own
	t.totals.full -= full
	t.totals.dataSize -= int64(len(n.Path())) + n.State().DataLen()
	if len(t.measured.subtrees) > 0 {
		t.measured.follow(n.Path(), -1, -n.State().DataLen())
	}
}

// digests returns n's part of ZooKeeper's digest and of the full digest.
func (t *store) digests(n *node) (own, full uint64) {
	putStat(n.State(), &t.statBuf, n.Owner())
	own = uint64(extendCRC(n.State().CRC(), &t.statBuf))
	full = own<<8 | uint64(n.Kind())<<1
	if n.State().IsNull() {
		full |= 1 // tells null from empty data, which have the same CRC
	}
	full = mix(mix(full) ^ n.State().ACL.Hash())
	if belowProc(n.Path()) {
		own = 0
	}
	return own, full
}

// extendCRC extends the checksum crc by the stat in b. It returns the same as
// crc32.Update(crc, IEEETable, b[statPad:]) at a quarter of the cost, but overwrites b. We
// can do this because the initial state of a CRC-32 can be XORed into the first four bytes,
// and zeros before them leave a zero state unchanged.
func extendCRC(crc uint32, b *[statBlock]byte) uint32 {
	le := binary.LittleEndian
	le.PutUint32(b[statPad:], le.Uint32(b[statPad:])^^crc)
	return crc32.Update(^uint32(0), crc32.IEEETable, b[:])
}

// putStat writes the part of the stat that goes into a digest.
func putStat(s *arena.State, block *[statBlock]byte, owner int64) {
	be, b := binary.BigEndian, block[statPad:]
	be.PutUint64(b[0:], uint64(s.Czxid))
	be.PutUint64(b[8:], uint64(s.Mzxid))
	be.PutUint64(b[16:], uint64(s.Pzxid))
	be.PutUint64(b[24:], uint64(s.Ctime))
	be.PutUint64(b[32:], uint64(s.Mtime))
	be.PutUint32(b[40:], uint32(s.Version))
	be.PutUint32(b[44:], uint32(s.Cversion))
	be.PutUint32(b[48:], uint32(s.Aversion))
	be.PutUint64(b[52:], uint64(owner))
}

// belowProc reports whether ZooKeeper's digest leaves out path.
func belowProc(path string) bool {
	return len(path) > len(procPath) && strings.HasPrefix(path, procPath) && path[len(procPath)] == '/'
}

// mix spreads every bit of x over all bits. We use the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
