package replica

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// RaftLogger lets Raft log through log. Raft's warnings describe the course of an
// election in detail, so we log them at level debug: this package logs itself that a
// server no longer serves, and why. Raft's errors remain errors, unless they repeat.
func RaftLogger(log *slog.Logger) hclog.Logger {
	if !log.Enabled(context.Background(), slog.LevelError) {
		return hclog.NewNullLogger()
	}
	lowest := hclog.Error
	if log.Enabled(context.Background(), slog.LevelDebug) {
		lowest = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{
		Name: "raft", Level: lowest, DisableTime: true, Output: raftLogWriter{log},
	})
}

// raftLogWriter receives the lines of an hclog.Logger: "[WARN]  raft: text".
type raftLogWriter struct{ log *slog.Logger }

// Write implements io.Writer. Each call is one line.
func (w raftLogWriter) Write(p []byte) (int, error) {
	level, text, _ := bytes.Cut(p, []byte("]"))
	at := slog.LevelDebug
	if string(bytes.TrimLeft(level, "[")) == "ERROR" && !expected(text) {
		at = slog.LevelError
	}
	w.log.Log(context.Background(), at, string(bytes.TrimSpace(text)))
	return len(p), nil
}

// expected reports whether a line repeats that another server cannot be reached, which
// the leader logs once, or that a snapshot can't be written, which snapshotLoop logs.
func expected(line []byte) bool {
	for _, s := range []string{
		"failed to heartbeat", "failed to appendEntries", "failed to make requestVote", "failed to contact",
		"failed to decode incoming command", "failed to flush response", "failed to pipeline",
		"failed to take snapshot",
	} {
		if bytes.Contains(line, []byte(s)) {
			return true
		}
	}
	return false
}
