package raftfsm

import (
	"strconv"
	"strings"
	"time"
)

// lastSnapshot is what is known of the newest snapshot of this server.
type lastSnapshot struct {
	zxid, bytes int64
	at          time.Time
}

// LastSnapshot returns the zxid and the time of the newest snapshot that this
// server has written or began with; false when there is none.
func (n *Node) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	s := n.lastSnapshot.Load()
	if s == nil {
		return 0, time.Time{}, false
	}
	return s.zxid, s.at, true
}

// LastSnapshotBytes returns the size of that snapshot, 0 without one.
func (n *Node) LastSnapshotBytes() int64 {
	if s := n.lastSnapshot.Load(); s != nil {
		return s.bytes
	}
	return 0
}

func (n *Node) noteSnapshot(zxid, bytes int64) {
	n.lastSnapshot.Store(&lastSnapshot{zxid, bytes, n.cfg.Wall()})
}

// snapshotTime is when a snapshot was written, which its id says in the end; zero
// when it does not.
func snapshotTime(id string) time.Time {
	ms, err := strconv.ParseInt(id[strings.LastIndexByte(id, '-')+1:], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
