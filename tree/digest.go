package tree

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// statBlock is the length of the part of the stat that goes into a digest.
const statBlock = 60

// Digest returns ZooKeeper's tree digest, version 2: the sum over all nodes but
// those below /zookeeper of the CRC-32 of path, data and stat.
func (t *Tree) Digest() uint64 { return t.totals.digest }

// FullDigest returns a digest of everything the tree holds, /zookeeper, access
// control lists and the newest zxid included. Equal trees have equal ones on
// every server and after every restart.
func (t *Tree) FullDigest() uint64 { return mix(t.totals.full + mix(uint64(t.zxid))) }

// count adds n to the totals.
func (t *Tree) count(n *Node) {
	own, full := t.digests(n)
	t.totals.digest += own
	t.totals.full += full
	t.totals.dataSize += int64(len(n.path())) + n.dataLen()
}

// uncount takes n out of the totals.
func (t *Tree) uncount(n *Node) {
	own, full := t.digests(n)
	t.totals.digest -= own
	t.totals.full -= full
	t.totals.dataSize -= int64(len(n.path())) + n.dataLen()
}

// digests returns n's part of ZooKeeper's digest and of the full one.
func (t *Tree) digests(n *Node) (own, full uint64) {
	n.putStat(&t.statBuf, n.owner())
	own = uint64(crc32.Update(n.crc(), crc32.IEEETable, t.statBuf[:]))
	full = own<<8 | uint64(n.kind())<<1
	if n.size < 0 {
		full |= 1 // null and empty data are different, which the CRC does not see
	}
	full = mix(mix(full) ^ n.acl.hash)
	if belowProc(n.path()) {
		own = 0
	}
	return own, full
}

// putStat writes the part of the stat that goes into a digest.
func (s *state) putStat(b *[statBlock]byte, owner int64) {
	be := binary.BigEndian
	be.PutUint64(b[0:], uint64(s.czxid))
	be.PutUint64(b[8:], uint64(s.mzxid))
	be.PutUint64(b[16:], uint64(s.pzxid))
	be.PutUint64(b[24:], uint64(s.ctime))
	be.PutUint64(b[32:], uint64(s.mtime))
	be.PutUint32(b[40:], uint32(s.version))
	be.PutUint32(b[44:], uint32(s.cversion))
	be.PutUint32(b[48:], uint32(s.aversion))
	be.PutUint64(b[52:], uint64(owner))
}

// belowProc says whether path is one of those that ZooKeeper's digest leaves out.
func belowProc(path string) bool {
	return len(path) > len(procPath) && strings.HasPrefix(path, procPath) && path[len(procPath)] == '/'
}

// mix spreads every bit of x over all (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
