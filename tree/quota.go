package tree

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Names of the two znodes of a quota, below /zookeeper/quota and the limited
// path.
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

// quota is one quota: its limits and its usage.
type quota struct {
	limits, stats tally
	counted       bool // there is a stats node
}

// limitedPath returns the path that a limits node limits. For a limits node directly
// below /zookeeper/quota it returns "": the tree stores a quota on the root but
// never applies it.
func limitedPath(path string) (string, bool) {
	if !strings.HasPrefix(path, quotaPath+"/") || !strings.HasSuffix(path, limitsName) {
		return "", false
	}
	return path[len(quotaPath) : len(path)-len(limitsName)], true
}

// quotaOf returns the limited path that applies to path, the deepest one at or
// above it, or "" if there is none.
func (t *store) quotaOf(path string) string {
	if len(t.quotas) == 0 {
		return ""
	}
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if t.quotas[path[:end]] != nil {
			return path[:end]
		}
	}
	return ""
}

// statsNode returns the node with the usage of a limited path.
func (t *store) statsNode(prefix string) *node {
	t.statsName = append(append(append(t.statsName[:0], quotaPath...), prefix...), statsName...)
	return t.get(arena.View(t.statsName))
}

// loadQuota reads one quota.
func (t *store) loadQuota(prefix string) quota {
	q := quota{limits: parseTally(t.quotas[prefix].Data())}
	if n := t.statsNode(prefix); n != nil {
		q.stats, q.counted = parseTally(n.Data()), true
	}
	return q
}

// QuotaUse is a quota and its usage. An absent number is −1.
type QuotaUse struct {
	Path                   string
	CountLimit, BytesLimit int64 // hard limits, or soft limits if there are no hard ones
	Count, Bytes           int64
}

// QuotaPaths returns the paths that have a quota, in no particular order. The caller holds
// the lock.
func (t *Tree) QuotaPaths() []string { return slices.Collect(maps.Keys(t.quotas)) }

// Quota returns the quota of a path, and false if it has none. The caller holds the lock.
func (t *Tree) Quota(path string) (QuotaUse, bool) {
	if t.quotas[path] == nil {
		return QuotaUse{}, false
	}
	q := t.loadQuota(path)
	u := QuotaUse{Path: path, CountLimit: q.limits.get(countHardName), BytesLimit: q.limits.get(byteHardName),
		Count: q.stats.get(countName), Bytes: q.stats.get(bytesName)}
	if u.CountLimit < 0 {
		u.CountLimit = q.limits.get(countName)
	}
	if u.BytesLimit < 0 {
		u.BytesLimit = q.limits.get(bytesName)
	}
	return u, true
}

// checkQuota returns Ok, or the code with which a quota refuses a change at path. A
// quota refuses a change that would break a hard limit. It also refuses if its text
// can't be parsed, because ZooKeeper fails on it. Within a multi the usage before the
// multi counts: a delete makes no room for a later create. If the leader's memory is
// full, growth is refused whatever the quota.
func (t *exec) checkQuota(path string, bytes, count int64) proto.Code {
	if t.tx.Policy&Full != 0 && (bytes > 0 || count > 0) {
		return proto.ErrQuotaExceeded
	}
	if t.tx.Policy&EnforceQuota == 0 {
		return proto.Ok
	}
	var q quota
	if t.undo.active {
		q = t.quotaBefore(path)
	} else if prefix := t.quotaOf(path); prefix != "" {
		q = t.loadQuota(prefix)
	}
	hardCount, hardBytes := q.limits.get(countHardName), q.limits.get(byteHardName)
	limited := count != 0 && max(hardCount, q.limits.get(countName)) > -1 || bytes != 0 && max(hardBytes, q.limits.get(bytesName)) > -1
	switch {
	case q.limits.bad:
		return proto.ErrMarshalling
	case !q.counted || !limited: // then the usage doesn't matter, even if it is bad
		return proto.Ok
	case q.stats.bad:
		return proto.ErrMarshalling
	case count != 0 && hardCount > -1 && q.stats.get(countName)+count > hardCount,
		bytes != 0 && hardBytes > -1 && q.stats.get(bytesName)+bytes > hardBytes:
		return proto.ErrQuotaExceeded
	}
	return proto.Ok
}

// quotaBefore returns the quota that applied to path before the running multi, or an
// empty one.
func (t *editor) quotaBefore(path string) quota {
	if len(t.quotas) == 0 && len(t.undo.quotas) == 0 {
		return quota{}
	}
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if q := t.rememberQuota(path[:end]); q != nil {
			return *q
		}
	}
	return quota{}
}

// rememberQuota returns the quota of a limited path as it was before the running multi,
// or nil. If the quota exists, rememberQuota keeps that state, because reading it again
// for each operation could be slow.
func (t *editor) rememberQuota(prefix string) *quota {
	q, known := t.undo.quotas[prefix]
	if !known && t.quotas[prefix] != nil {
		loaded := t.loadQuota(prefix)
		q = &loaded
		t.keepQuota(prefix, q)
	}
	return q
}

// keepQuota records the state of a quota before the running multi.
func (t *editor) keepQuota(prefix string, q *quota) {
	if t.undo.quotas == nil {
		t.undo.quotas = make(map[string]*quota)
	}
	t.undo.quotas[strings.Clone(prefix)] = q
}

// quotaChanges must be called before the running multi creates, changes or removes the
// node at path. It records the quota that the node belongs to. We don't read all quotas
// at the start of a multi, because there may be many.
func (t *editor) quotaChanges(path string) {
	if !t.undo.enforced || !strings.HasPrefix(path, quotaPath+"/") {
		return
	}
	rest := path[len(quotaPath):]
	prefix, found := strings.CutSuffix(rest, limitsName)
	if !found {
		if prefix, found = strings.CutSuffix(rest, statsName); !found {
			return
		}
	}
	if _, known := t.undo.quotas[prefix]; !known && t.rememberQuota(prefix) == nil {
		t.keepQuota(prefix, nil)
	}
}

// charge adds to the usage of the quota that applies to path. It changes only the
// data of the stats node: the version stays, and no watch fires.
func (t *editor) charge(path string, bytes, count int64) {
	prefix := t.quotaOf(path)
	if prefix == "" {
		return
	}
	n := t.statsNode(prefix)
	if n == nil {
		return
	}
	usage := parseTally(n.Data())
	usage.set(countName, usage.get(countName)+count)
	usage.set(bytesName, usage.get(bytesName)+bytes)
	t.overwrite(n, usage.append(nil))
}

// overwrite replaces the data of a stats node.
func (t *editor) overwrite(n *node, data []byte) {
	t.edit(n)
	n.State().Rewrite(data, n.State().Version)
	t.commit(n)
}

// quotaCreated does the accounting for a new node. It replaces the data of a new
// stats node with the usage counted now.
func (t *editor) quotaCreated(n *node) {
	size := n.State().DataLen()
	if strings.HasPrefix(n.Path(), quotaPath+"/") && strings.HasSuffix(n.Path(), statsName) {
		t.overwrite(n, t.measure(n.Path()[len(quotaPath):len(n.Path())-len(statsName)]))
	}
	t.charge(n.Path(), size, 1)
}

// measure returns the text of the usage of path's subtree.
func (t *store) measure(path string) []byte {
	var now tally
	now.set(countName, 0)
	now.set(bytesName, 0)
	if n := t.get(path); n != nil {
		count, bytes := t.measuredUsage(n)
		now.set(countName, int64(count))
		now.set(bytesName, bytes)
	}
	return now.append(nil)
}

// quotaDeleted does the accounting for a removed node.
func (t *editor) quotaDeleted(n *node) { t.charge(n.Path(), -n.State().DataLen(), -1) }

// tally is the parsed text of limits or usage, e.g.
// "count=4,bytes=5=;byteHardLimit=10". An absent name is false in has and counts
// as −1.
type tally struct {
	value [4]int64
	has   [4]bool
	bad   bool // the text has malformed parts
}

// The names of a tally, in the order in which append writes them.
const (
	countName = iota
	bytesName
	byteHardName
	countHardName
)

func tallyNames() [4]string { return [4]string{"count", "bytes", "byteHardLimit", "countHardLimit"} }

// parseTally parses data. We ignore everything except pairs of a known name and a number:
// clients may write anything to these znodes. The tally is bad if ZooKeeper can't parse a
// part as a name and a number, or if data is null or too long. A missing number at the end
// of a part is bad, but an empty number between two = counts as −1.
func parseTally(data []byte) tally {
	if len(data) > MaxQuotaText {
		return tally{bad: true}
	}
	names := tallyNames()
	text := arena.View(data)
	v := tally{bad: data == nil || strings.Trim(text, ",;") != "" && strings.ContainsAny(text[:1], ",;")}
	for pair := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' || c == ';' }) {
		pair = strings.TrimRight(pair, "=") // the stray = after bytes
		key, value, found := strings.Cut(pair, "=")
		value, _, _ = strings.Cut(value, "=")
		number, err := strconv.ParseInt(value, 10, 64)
		if found && value == "" {
			number, err = -1, nil
		}
		if err != nil {
			v.bad = true
			continue
		}
		if i := slices.Index(names[:], key); i >= 0 {
			v.set(i, number)
		}
	}
	return v
}

// get returns the number of name i, or −1 if there is none.
func (v *tally) get(i int) int64 {
	if !v.has[i] {
		return -1
	}
	return v.value[i]
}

func (v *tally) set(i int, value int64) { v.value[i], v.has[i] = value, true }

// append appends the text as ZooKeeper writes it: always count and bytes, then,
// after a stray =, the limits that are set.
func (v *tally) append(b []byte) []byte {
	names := tallyNames()
	b = strconv.AppendInt(append(b, "count="...), v.get(countName), 10)
	b = strconv.AppendInt(append(b, ",bytes="...), v.get(bytesName), 10)
	if v.has[byteHardName] || v.has[countHardName] {
		b = append(b, '=')
	}
	for i := byteHardName; i <= countHardName; i++ {
		if v.has[i] {
			b = append(append(append(b, ';'), names[i]...), '=')
			b = strconv.AppendInt(b, v.value[i], 10)
		}
	}
	return b
}
