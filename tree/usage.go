package tree

// QuotaUse is a quota and its usage. An absent number is −1.
type QuotaUse struct {
	Path                   string
	CountLimit, BytesLimit int64 // hard limits, or soft ones where there is no hard one
	Count, Bytes           int64
}

// Quotas returns all quotas, in no particular order. The caller holds the lock.
func (t *Tree) Quotas() []QuotaUse {
	var all []QuotaUse
	for path, q := range t.allQuotas() {
		u := QuotaUse{Path: path, CountLimit: q.limits.get(countHardName), BytesLimit: q.limits.get(byteHardName),
			Count: q.stats.get(countName), Bytes: q.stats.get(bytesName)}
		if u.CountLimit < 0 {
			u.CountLimit = q.limits.get(countName)
		}
		if u.BytesLimit < 0 {
			u.BytesLimit = q.limits.get(bytesName)
		}
		all = append(all, u)
	}
	return all
}
