package raftfsm

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger lets Raft log through log. What Raft finds worth an Info is
// debugging here.
func raftLogger(log *slog.Logger) hclog.Logger {
	if !log.Enabled(context.Background(), slog.LevelWarn) {
		return hclog.NewNullLogger()
	}
	lowest := hclog.Warn
	if log.Enabled(context.Background(), slog.LevelDebug) {
		lowest = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{
		Name: "raft", Level: lowest, DisableTime: true, Output: raftLogWriter{log},
	})
}

// raftLogWriter takes the lines of an hclog.Logger: "[WARN]  raft: text".
type raftLogWriter struct{ log *slog.Logger }

// Write implements io.Writer. Each call is one line.
func (w raftLogWriter) Write(p []byte) (int, error) {
	level, text, _ := bytes.Cut(p, []byte("]"))
	at := slog.LevelDebug
	switch string(bytes.TrimLeft(level, "[")) {
	case "ERROR":
		at = slog.LevelError
	case "WARN":
		at = slog.LevelWarn
	}
	if expected(text) {
		at = slog.LevelDebug
	}
	w.log.Log(context.Background(), at, string(bytes.TrimSpace(text)))
	return len(p), nil
}

// expected says whether a line tells, again and again, that another server
// cannot be reached. That is told once, by whoever leads.
func expected(line []byte) bool {
	for _, s := range []string{
		"failed to heartbeat", "failed to appendEntries", "failed to make requestVote", "failed to contact",
		"failed to decode incoming command", "failed to flush response", "failed to pipeline",
	} {
		if bytes.Contains(line, []byte(s)) {
			return true
		}
	}
	return false
}
