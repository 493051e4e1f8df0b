package raftfsm

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/session"
)

// maxExpiryLines limits the expired sessions that are logged in expiryWindow.
const (
	maxExpiryLines = 100
	expiryWindow   = 10 * time.Second
)

// expiryLog logs the sessions that expire. Above maxExpiryLines it only counts them,
// because a client can create thousands of sessions and abandon them.
type expiryLog struct {
	since  time.Time
	lines  int
	others int
}

// renew starts another window if the current one is over.
func (e *expiryLog) renew(log *slog.Logger, now time.Time) {
	if now.Sub(e.since) < expiryWindow {
		return
	}
	if e.others > 0 {
		log.Info("more sessions expired than were logged", "sessions", e.others)
	}
	*e = expiryLog{since: now}
}

// log logs or counts one session.
func (e *expiryLog) log(log *slog.Logger, now time.Time, s session.Deadline) {
	e.renew(log, now)
	if e.lines == maxExpiryLines {
		e.others++
		return
	}
	e.lines++
	log.Info("session expires", "session", fmt.Sprintf("0x%x", s.Session), "timeout", s.Timeout)
}
