package stats

import (
	"slices"
	"sync"

	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/tree"
)

// digestEvery is the number of transactions between two entries of the digest log, and
// digestsKept the maximum number of entries.
const (
	digestEvery = 128
	digestsKept = 1024
)

// DigestLog is the list of the latest digests, oldest first.
type DigestLog struct {
	mu   sync.Mutex
	kept []status.Digest
}

// Note records the digest after a transaction; the tree is locked.
func (l *DigestLog) Note(zxid int64, t *tree.Tree) {
	if uint32(zxid)%digestEvery != 0 || uint32(zxid) == 0 { // 0 begins an epoch and is not a client's transaction
		return
	}
	d := status.Digest{Zxid: zxid, Digest: t.Digest()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == digestsKept {
		l.kept = append(l.kept[:0], l.kept[1:]...)
	}
	l.kept = append(l.kept, d)
}

// List returns a copy of the digests.
func (l *DigestLog) List() []status.Digest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
