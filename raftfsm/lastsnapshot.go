package raftfsm

import (
	"strconv"
	"strings"
	"time"
)

// lastSnapshot describes the newest snapshot of this server.
type lastSnapshot struct {
	zxid, bytes int64
	at          time.Time
}

// LastSnapshot returns the zxid and the time of the newest snapshot that this server
// has written or started from. ok is false when there is none.
func (n *Node) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	s := n.lastSnapshot.Load()
	if s == nil {
		return 0, time.Time{}, false
	}
	return s.zxid, s.at, true
}

// LastSnapshotBytes returns the size of that snapshot in bytes, or 0 when there is
// none.
func (n *Node) LastSnapshotBytes() int64 {
	if s := n.lastSnapshot.Load(); s != nil {
		return s.bytes
	}
	return 0
}

func (n *Node) noteSnapshot(zxid, bytes int64) {
	n.lastSnapshot.Store(&lastSnapshot{zxid, bytes, n.cfg.Wall()})
}

// snapshotTime returns the time at which a snapshot was written, which the last part of
// its id holds. It returns zero when the id has no time.
func snapshotTime(id string) time.Time {
	ms, err := strconv.ParseInt(id[strings.LastIndexByte(id, '-')+1:], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
