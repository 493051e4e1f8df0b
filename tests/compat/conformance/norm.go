package conformance

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"strconv"
	"time"
)

// normaliser replaces values that differ between runs with names that do not;
// doc.go says which and how.
type normaliser struct {
	base      int64 // the zxid called Z0
	sessions  map[int64]string
	passwords map[string]string
	times     map[int64]int64  // zxid → observed time of its transaction
	windows   map[int64]window // zxid → when the write was in flight
	started   time.Time
}

// window is the span in which the time of a transaction must lie.
type window struct{ sent, received time.Time }

// clockSlack allows for two ways of reading one clock: the server truncates to
// milliseconds, the runner does not.
const clockSlack = 5 * time.Millisecond

func newNormaliser(base int64) *normaliser {
	return &normaliser{
		base: base, sessions: map[int64]string{}, passwords: map[string]string{},
		times: map[int64]int64{}, windows: map[int64]window{}, started: time.Now(),
	}
}

// zxid names a zxid by its distance from the first one: gaps stay visible.
func (n *normaliser) zxid(v int64) string {
	if v == 0 || v == -1 {
		return strconv.FormatInt(v, 10)
	}
	if v < n.base {
		return fmt.Sprintf("Z(%#x)", v)
	}
	return "Z" + strconv.FormatInt(v-n.base, 10)
}

// session names a session id by the order of first appearance.
func (n *normaliser) session(v int64) string {
	if v == 0 {
		return "0"
	}
	if _, ok := n.sessions[v]; !ok {
		n.sessions[v] = fmt.Sprint("S", len(n.sessions)+1)
	}
	return n.sessions[v]
}

// password names a password by length and order of first appearance.
func (n *normaliser) password(v []byte) string {
	switch {
	case v == nil:
		return "null"
	case bytes.Count(v, []byte{0}) == len(v):
		return fmt.Sprint(len(v), "#0")
	}
	if _, ok := n.passwords[string(v)]; !ok {
		n.passwords[string(v)] = fmt.Sprint("P", len(n.passwords)+1)
	}
	return fmt.Sprint(len(v), "#", n.passwords[string(v)])
}

// wrote records when the write with this zxid was sent and when its reply
// arrived.
func (n *normaliser) wrote(zxid int64, w window) {
	if _, ok := n.windows[zxid]; !ok {
		n.windows[zxid] = w
	}
}

// time names a transaction time after the transaction's zxid, after checking the
// time: it must be the same wherever the zxid appears, and lie within the span in
// which the write was in flight.
func (n *normaliser) time(zxid, millis int64) string {
	if zxid == 0 {
		return strconv.FormatInt(millis, 10)
	}
	name := "T" + n.zxid(zxid)[1:]
	if known, ok := n.times[zxid]; ok {
		if known != millis {
			return fmt.Sprintf("%s(not the same everywhere: %+dms)", name, millis-known)
		}
		return name
	}
	n.times[zxid] = millis
	w, ok := n.windows[zxid]
	if !ok {
		w = window{n.started, time.Now()}
	}
	at := time.UnixMilli(millis)
	if at.Before(w.sent.Add(-clockSlack)) {
		return name + "(too early)"
	}
	if at.After(w.received.Add(clockSlack)) {
		return name + "(too late)"
	}
	return name
}

// longest is the length of the longest data or list that a transcript shows in
// full.
const longest = 200

// text formats a ustring or buffer.
func text(b []byte) string {
	if b == nil {
		return "null"
	}
	if len(b) > longest && !bytes.HasPrefix(b, []byte("server.")) { // show a membership in full
		return fmt.Sprintf("%d bytes sha1:%x", len(b), sha1.Sum(b))
	}
	return strconv.Quote(string(b))
}
