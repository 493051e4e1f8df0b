package tree

import (
	"maps"
	"slices"
)

// QuotaUse is a quota and its usage. An absent number is −1.
type QuotaUse struct {
	Path                   string
	CountLimit, BytesLimit int64 // hard limits, or soft ones where there is no hard one
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
