package raftfsm

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/session"
)

// Thousands of sessions that expire together don't fill the log.
func TestExpiriesDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	logger := slog.New(slog.NewTextHandler(&b, nil))
	var e expiryLog
	now := time.Unix(1000, 0)
	for i := range int64(5000) {
		e.log(logger, now.Add(time.Duration(i)*time.Millisecond), session.Deadline{Session: i})
	}
	if got := strings.Count(b.String(), "\n"); got != maxExpiryLines {
		t.Errorf("%d lines", got)
	}
	b.Reset()
	e.renew(logger, now.Add(expiryWindow))
	e.log(logger, now.Add(expiryWindow), session.Deadline{Session: 0xabc})
	if got := b.String(); !strings.Contains(got, "sessions=4900") || !strings.Contains(got, "0xabc") {
		t.Error(got)
	}
}
