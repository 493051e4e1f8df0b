package observermaster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// History has the newest transactions. It implements raftfsm.Config.Stream; the state machine calls
// it under the tree's lock. It is safe for concurrent use.
type History struct {
	limit int

	mu      sync.Mutex
	entries []entry
	first   uint64        // number of entries[0]; numbers count all transactions since the start
	bytes   int           // in entries
	floor   int64         // zxid before entries[0]
	last    int64         // newest zxid
	jumps   uint64        // counts Jump
	more    chan struct{} // closed at the next change; nil until a caller asks
}

// entry is a transaction.
type entry struct {
	zxid int64
	txn  []byte
}

// NewHistory returns a History of about limit bytes.
func NewHistory(limit int) *History { return &History{limit: limit} }

// entryOverhead is an entry's memory in addition to its transaction.
const entryOverhead = 64

// Txn adds a transaction, which belongs to h.
func (h *History) Txn(zxid int64, txn []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, entry{zxid, txn})
	h.bytes += len(txn) + entryOverhead
	h.last = zxid
	drop := 0
	for h.bytes > h.limit && drop < len(h.entries)-1 {
		h.bytes -= len(h.entries[drop].txn) + entryOverhead
		h.floor = h.entries[drop].zxid
		drop++
	}
	clear(h.entries[:drop])
	h.entries = h.entries[drop:]
	h.first += uint64(drop)
	h.wake()
}

// Jump reports that the state was replaced by another one. All observers begin again.
func (h *History) Jump(zxid int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first += uint64(len(h.entries))
	h.entries, h.bytes = nil, 0
	h.floor, h.last = zxid, zxid
	h.jumps++
	h.wake()
}

// wake wakes the observers that wait for more; h.mu is held.
func (h *History) wake() {
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
}

// cursor is a position in a History.
type cursor struct {
	h     *History
	next  uint64 // number of the next transaction
	jumps uint64
}

// errAhead rejects an observer that has transactions that we lack.
var errAhead = errors.New("it has newer transactions than this server: it follows another ensemble, or this server lags; it may ask another server")

// after returns the position after the transaction zxid, and whether the transactions since then
// lead to our state. If they don't, the position is the end. The caller holds the tree's lock, so
// the end is the tree's newest zxid.
func (h *History) after(zxid int64) (c cursor, leads bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if zxid > h.last {
		return c, false, fmt.Errorf("%w (its zxid is 0x%x, ours 0x%x)", errAhead, zxid, h.last)
	}
	c = cursor{h, h.first + uint64(len(h.entries)), h.jumps}
	i, found := slices.BinarySearchFunc(h.entries, zxid, func(e entry, zxid int64) int { return cmp.Compare(e.zxid, zxid) })
	switch {
	case zxid == 0: // it has nothing
	case found:
		c.next, leads = h.first+uint64(i)+1, true
	case zxid == h.floor:
		c.next, leads = h.first, true
	}
	return c, leads, nil
}

// end returns the number of the next transaction, and the newest zxid.
func (h *History) end() (next uint64, last int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first + uint64(len(h.entries)), h.last
}

// The errors of an observer that must begin again.
var (
	errSlow = errors.New("it is too slow: the transactions that it needs are no longer in memory (observerMaster.sizeLimit)")
	errJump = errors.New("the state was replaced")
)

// takeLimit limits the bytes of transactions from one call of take, unless a single one is longer.
const takeLimit = 256 << 10

// take returns the next transactions, and a channel that we close when there are more.
func (c *cursor) take() (list []entry, more <-chan struct{}, err error) {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case c.jumps != h.jumps:
		return nil, nil, errJump
	case c.next < h.first:
		return nil, nil, errSlow
	}
	size := 0
	for _, e := range h.entries[c.next-h.first:] {
		if size += len(e.txn); len(list) > 0 && size > takeLimit {
			break
		}
		list = append(list, e)
	}
	c.next += uint64(len(list))
	if h.more == nil {
		h.more = make(chan struct{})
	}
	return list, h.more, nil
}
