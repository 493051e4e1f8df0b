package checkers

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// expiry checks that a session lives for its timeout (on a server that has lost its leader, for the
// rest of its timeout) after its client sent a request that was answered.
func expiry(x *index, o *Options, r *Result) {
	expired := 0
	for _, l := range x.sessions() {
		if l.id == 0 || l.closed != nil {
			continue
		}
		for _, s := range l.changes {
			if s.Change != history.Expired {
				continue
			}
			expired++
			call, rec := l.heard(s.At)
			if rec != nil && s.At-call < l.timeout*int64(o.Heard)/10 {
				r.violation(x, []record{rec, s}, "session %#x was over at %s, and a request that its client sent at %s was answered; its timeout is %s",
					l.id, history.Clock(s.At), history.Clock(call), history.Clock(l.timeout))
			}
		}
	}
	r.count(len(x.lives), "sessions")
	r.count(expired, "told that they expired")
}

// heard returns when the client sent the latest request that was answered before
// a time.
func (l *life) heard(before history.Time) (history.Time, record) {
	var call history.Time
	var rec record
	for _, c := range l.conns {
		if a := c.attach; a != nil && a.At < before && a.Call > call {
			call, rec = a.Call, a
		}
		for _, o := range c.ops {
			if o.Answered() && o.Return <= before && o.Call > call && o.Code != proto.ErrSessionExpired {
				call, rec = o.Call, o
			}
		}
	}
	return call, rec
}
