package raftlog

import (
	"sync"

	"github.com/hashicorp/raft"
)

// entryOverhead is the memory that an entry uses besides its data.
const entryOverhead = 160

// cache keeps the newest entries, up to a number of bytes, so that reads for followers that
// keep up and for the local state machine don't touch the disk. We don't use Raft's own
// LogCache, because it counts entries, which could be gigabytes for entries of 1 MiB.
//
// Entries are consecutive: entries[i] has index first+i.
type cache struct {
	mu      sync.RWMutex
	entries []*raft.Log
	first   uint64
	bytes   int64
	limit   int64
}

func entryBytes(l *raft.Log) int64 { return int64(len(l.Data)+len(l.Extensions)) + entryOverhead }

// get copies the entry's header; Data is shared and never written to.
func (c *cache) get(index uint64, out *raft.Log) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if index < c.first || index-c.first >= uint64(len(c.entries)) {
		return false
	}
	*out = *c.entries[index-c.first]
	return true
}

// add appends entries that were stored. It always keeps the newest one.
func (c *cache) add(logs []*raft.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit <= 0 {
		return
	}
	if len(c.entries) == 0 || c.first+uint64(len(c.entries)) != logs[0].Index {
		c.clearLocked()
		c.first = logs[0].Index
	}
	for _, l := range logs {
		c.entries = append(c.entries, l)
		c.bytes += entryBytes(l)
	}
	n := 0
	for c.bytes > c.limit && n < len(c.entries)-1 {
		c.bytes -= entryBytes(c.entries[n])
		c.entries[n] = nil // append reallocates only occasionally, and we don't want to pin the data until then
		n++
	}
	c.entries = c.entries[n:]
	c.first += uint64(n)
}

// remove drops the entries that DeleteRange removes, from lo to hi inclusive.
func (c *cache) remove(lo, hi uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.first + uint64(len(c.entries)) // exclusive
	if len(c.entries) == 0 || hi < c.first || lo >= end {
		return
	}
	if lo > c.first && hi < end-1 {
		c.clearLocked()
		return
	}
	from, to := max(lo, c.first)-c.first, min(hi, end-1)+1-c.first
	for i := from; i < to; i++ {
		c.bytes -= entryBytes(c.entries[i])
		c.entries[i] = nil
	}
	if from == 0 {
		c.entries = c.entries[to:]
		c.first += to
	} else {
		c.entries = c.entries[:from]
	}
}

func (c *cache) clearLocked() {
	c.entries, c.first, c.bytes = nil, 0, 0
}
