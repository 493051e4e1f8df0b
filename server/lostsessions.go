package server

// lostSessionsPerCnxn times maxClientCnxns is how many sessions without a connection
// one address may leave at a server. A session that its client doesn't close lasts
// until its timeout, on every server, and costs the client nothing.
const lostSessionsPerCnxn = 100

// maxLostSessions is that bound if maxClientCnxns is 0.
const maxLostSessions = 100_000

// lostSessions counts, by address, the sessions that have lost their connection to this
// server and have neither ended nor come back. The mutex of clientTable guards it.
type lostSessions struct {
	hosts  map[int64]string
	counts map[string]int
}

// add records that a session has lost its connection.
func (l *lostSessions) add(sid int64, host string) {
	if _, known := l.hosts[sid]; known || sid == 0 {
		return
	}
	if l.hosts == nil {
		l.hosts, l.counts = make(map[int64]string), make(map[string]int)
	}
	l.hosts[sid] = host
	l.counts[host]++
}

// remove records that a session has ended, or has a connection again.
func (l *lostSessions) remove(sid int64) {
	host, known := l.hosts[sid]
	if !known {
		return
	}
	delete(l.hosts, sid)
	if l.counts[host]--; l.counts[host] == 0 {
		delete(l.counts, host)
	}
}

// mayBegin reports whether the address of c may begin another session.
func (t *clientTable) mayBegin(c *conn) bool {
	s := t.s
	most := s.cfg.Limits.MaxClientCnxns * lostSessionsPerCnxn
	if most <= 0 {
		most = maxLostSessions
	}
	if c.host == "" {
		return true
	}
	t.mu.Lock()
	n := t.lost.counts[c.host]
	t.mu.Unlock()
	if n < most {
		return true
	}
	s.stats.Rejected.Add(1)
	c.complain("closing a client: its address has too many sessions that have lost their connections", "sessions", n, "maxClientCnxns", s.cfg.Limits.MaxClientCnxns)
	return false
}

// forgetLost forgets which sessions have lost their connections.
func (t *clientTable) forgetLost() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = lostSessions{}
}
