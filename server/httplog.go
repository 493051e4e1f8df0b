package server

import (
	"bytes"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/keystore"
)

// httpLog receives what package http logs about a port, one line at a time. The server
// logs the clients that it refuses as it does on its client ports. Package http tells of
// them only in these lines.
type httpLog struct {
	s       *Server
	setting string // the key that names the port
}

// The lines about clients that don't get an answer.
const (
	httpHandshake = "http: TLS handshake error from " // address: error
	httpAccept    = "http: Accept error: "
)

// Write implements io.Writer.
func (h httpLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	select {
	case <-h.s.done: // the server closes its connections
		return len(line), nil
	default:
	}
	if refused, ok := strings.CutPrefix(text, httpHandshake); ok {
		client, reason, _ := strings.Cut(refused, ": ")
		h.s.complaints.warn(h.s.clock(), "closing a client of "+h.setting+": the TLS handshake failed",
			"client", client, "error", keystore.Explain(errors.New(reason)))
	} else if reason, ok := strings.CutPrefix(text, httpAccept); ok {
		h.s.complaints.warn(h.s.clock(), "cannot accept a client of "+h.setting, "error", reason)
	} else {
		h.s.log.Debug(text, "port", h.setting)
	}
	return len(line), nil
}
