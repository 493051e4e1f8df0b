package limits

// LostSessionsPerCnxn times maxClientCnxns is how many sessions without a connection
// one address may leave at a server. A session that its client doesn't close lasts
// until its timeout, on every server, and costs the client nothing.
const LostSessionsPerCnxn = 100

// MaxLostSessions is that bound if maxClientCnxns is 0.
const MaxLostSessions = 100_000

// LostSessions counts, by address, the sessions that have lost their connection to this
// server and have neither ended nor returned. The caller guards it with a lock.
type LostSessions struct {
	most   int
	hosts  map[int64]string
	counts map[string]int
}

// NewLostSessions returns LostSessions for addresses with at most maxClientCnxns
// connections; 0 or less: any number.
func NewLostSessions(maxClientCnxns int) LostSessions {
	most := maxClientCnxns * LostSessionsPerCnxn
	if most <= 0 {
		most = MaxLostSessions
	}
	return LostSessions{most: most, hosts: make(map[int64]string), counts: make(map[string]int)}
}

// Add records that a session has lost its connection.
func (l *LostSessions) Add(sid int64, host string) {
	if _, known := l.hosts[sid]; known || sid == 0 {
		return
	}
	l.hosts[sid] = host
	l.counts[host]++
}

// Remove records that a session has ended, or has a connection again.
func (l *LostSessions) Remove(sid int64) {
	host, known := l.hosts[sid]
	if !known {
		return
	}
	delete(l.hosts, sid)
	if l.counts[host]--; l.counts[host] == 0 {
		delete(l.counts, host)
	}
}

// Clear forgets all sessions.
func (l *LostSessions) Clear() {
	clear(l.hosts)
	clear(l.counts)
}

// Of returns how many sessions an address has lost, and whether it may begin another one.
func (l *LostSessions) Of(host string) (n int, mayBegin bool) {
	n = l.counts[host]
	return n, n < l.most
}
