package process

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Word sends a four-letter word and returns the reply.
func Word(addr, word string, limit time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return "", err
	}
	return WordOn(conn, word, limit)
}

// WordOn is Word over an open connection, which it closes.
func WordOn(conn net.Conn, word string, limit time.Duration) (string, error) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

// Status is a server's own description in its reply to srvr.
type Status struct {
	Mode string // leader, follower, observer, standalone, read-only
	Zxid int64  // of the newest transaction applied
}

// Epoch returns the epoch of the newest transaction applied.
func (s Status) Epoch() int64 { return s.Zxid >> 32 }

// Serves reports whether the server votes in an ensemble that has a leader.
func (s Status) Serves() bool { return s.Mode == "leader" || s.Mode == "follower" }

// ParseStatus reads the reply to srvr. A server that doesn't serve names no mode, which
// is an error.
func ParseStatus(srvr string) (Status, error) {
	var s Status
	for line := range strings.Lines(srvr) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "Mode":
			s.Mode = value
		case "Zxid":
			zxid, err := strconv.ParseUint(strings.TrimPrefix(value, "0x"), 16, 64)
			if err != nil {
				return Status{}, fmt.Errorf("srvr: %w", err)
			}
			s.Zxid = int64(zxid)
		}
	}
	if s.Mode == "" {
		return Status{}, fmt.Errorf("the server does not serve: %q", srvr)
	}
	return s, nil
}

// Ask asks a server for its status.
func Ask(addr string, limit time.Duration) (Status, error) {
	srvr, err := Word(addr, "srvr", limit)
	if err != nil {
		return Status{}, err
	}
	return ParseStatus(srvr)
}
