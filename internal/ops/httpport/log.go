package httpport

import (
	"bytes"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/certs"
)

// httpLog receives what package http logs about a port, one line at a time. We need these
// lines because package http reports the clients that it refuses nowhere else.
type httpLog struct {
	*Options
	closed <-chan struct{}
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
	case <-h.closed: // the port closes its connections
		return len(line), nil
	default:
	}
	if refused, ok := strings.CutPrefix(text, httpHandshake); ok {
		client, reason, _ := strings.Cut(refused, ": ")
		h.Complain("closing a client of "+h.Setting+": the TLS handshake failed",
			"client", client, "error", certs.Explain(errors.New(reason)))
	} else if reason, ok := strings.CutPrefix(text, httpAccept); ok {
		h.Complain("cannot accept a client of "+h.Setting, "error", reason)
	} else {
		h.Log.Debug(text, "port", h.Setting)
	}
	return len(line), nil
}
