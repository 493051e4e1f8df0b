package mirror

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/words"
)

// asker asks one server.
type asker struct {
	dial   words.Dial
	addr   string
	limit  time.Duration // for each question
	config *tls.Config   // for a port that accepts only TLS; nil: the system's authorities
	secure bool          // the port accepts only TLS
	asked  bool          // once
}

// ask sends a four-letter word and returns the answer. If a server does not answer the first one,
// it may wait for the rest of a TLS handshake.
func (a *asker) ask(ctx context.Context, word string) (string, error) {
	if a.secure {
		return a.askTLS(ctx, word)
	}
	first := !a.asked
	a.asked = true
	text, err := a.once(ctx, word, nil)
	var none *dialError
	if !first || err == nil || errors.Is(err, words.ErrNotListed) || errors.Is(err, words.ErrNotServing) || errors.As(err, &none) {
		return text, err
	}
	secret, wrong := a.askTLS(ctx, word)
	switch {
	case wrong == nil, errors.Is(wrong, words.ErrTLS):
		a.secure = true
		return secret, wrong
	case errors.Is(err, words.ErrTLS):
		a.secure = true
		return "", fmt.Errorf("%w (%w)", err, wrong)
	}
	return "", err
}

// askTLS sends a word inside TLS.
func (a *asker) askTLS(ctx context.Context, word string) (string, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.config != nil {
		config = a.config.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(a.addr)
	}
	return a.once(ctx, word, config)
}

// dialError is the error when there is no connection.
type dialError struct{ error }

// Unwrap returns the cause.
func (e *dialError) Unwrap() error { return e.error }

// once asks on a new connection, with TLS if config is not nil.
func (a *asker) once(ctx context.Context, word string, config *tls.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	conn, err := a.dial.To(ctx, a.addr)
	if err != nil {
		return "", &dialError{err}
	}
	defer conn.Close()
	if config == nil {
		return words.AskOn(ctx, conn, word)
	}
	secure := tls.Client(conn, config)
	err = secure.HandshakeContext(ctx)
	if err != nil && !answersTLS(err) {
		return "", err
	}
	text := ""
	if err == nil {
		text, err = words.AskOn(ctx, secure, word)
	}
	if err != nil && !errors.Is(err, words.ErrNotListed) && !errors.Is(err, words.ErrNotServing) {
		err = fmt.Errorf("%w (%w)", words.ErrTLS, err)
	}
	return text, err
}

// answersTLS reports whether the error of a handshake shows that the other side speaks TLS.
func answersTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var alert *net.OpError
	return errors.As(err, &verify) || errors.As(err, &alert) && alert.Op == "remote error"
}

// seen is what one server of the old ensemble says about itself.
type seen struct {
	server      *OldServer
	err         error    // nil if it has answered any word
	unlisted    []string // words
	version     string   // "" if unknown
	mode        string
	zxid        int64
	connections int
	mismatches  int64 // digests of the server's own that were wrong
	local       int64 // local sessions; -1 if unknown
}

// look asks a server, and completes its description.
func look(ctx context.Context, s *OldServer, a asker) *seen {
	v := &seen{server: s, local: -1}
	if a.addr = s.Client; a.addr == "" {
		a.addr, a.secure = s.Secure, true
	}
	answered := false
	for _, word := range []string{"srvr", "mntr", "conf", "dump"} {
		if word == "dump" && !v.needsDump() {
			continue // with many sessions, the answer is work for the server
		}
		text, err := a.ask(ctx, word)
		switch {
		case errors.Is(err, words.ErrNotListed):
			answered, v.unlisted = true, append(v.unlisted, word)
		case err != nil:
			v.err = err
		default:
			answered = true
			v.read(word, text)
		}
		var none *dialError
		if errors.Is(err, words.ErrTLS) || errors.As(err, &none) {
			break // the next word would fail, too
		}
	}
	if answered && !errors.Is(v.err, words.ErrNotServing) {
		v.err = nil // the fields of a missing answer stay empty
	}
	return v
}

// needsDump reports whether only the word dump can tell how many local sessions the server
// has: 3.4 has none, and since 3.6 mntr tells.
func (v *seen) needsDump() bool {
	if v.minor() == 4 {
		v.local = 0
	}
	return v.local < 0
}

// read extracts the values that we need from an answer.
func (v *seen) read(word, text string) {
	if word == "dump" {
		v.dump(text)
		return
	}
	take, separator := v.srvr, ": "
	switch word {
	case "mntr":
		take, separator = v.mntr, "\t"
	case "conf":
		take, separator = v.conf, "="
	}
	for name, value := range words.Fields(text, separator) {
		take(name, value)
	}
}

func (v *seen) conf(key, value string) {
	switch key {
	case "serverId":
		if id, err := strconv.ParseInt(value, 10, 64); err == nil && v.server.ID < 0 {
			v.server.ID = id
		}
	case "secureClientPort":
		if v.server.Secure == "" {
			v.server.Secure = withPort(v.server.Host(), value) // -1: none
		}
	}
}

func (v *seen) srvr(key, value string) {
	switch key {
	case "Zookeeper version":
		v.version, _, _ = strings.Cut(value, ",")
	case "Mode":
		v.mode = value
	case "Zxid":
		zxid, _ := strconv.ParseUint(strings.TrimPrefix(value, "0x"), 16, 64)
		v.zxid = int64(zxid)
	case "Connections":
		v.connections, _ = strconv.Atoi(value)
	}
}

func (v *seen) mntr(key, value string) {
	number, _ := strconv.ParseInt(value, 10, 64)
	switch key {
	case "zk_version":
		if v.version == "" {
			v.version, _, _ = strings.Cut(value, ",")
		}
	case "zk_server_state":
		if v.mode == "" {
			v.mode = value
		}
	case "zk_digest_mismatches_count":
		v.mismatches = number
	case "zk_local_sessions":
		v.local = number
	}
}

// dump reads the beginning of the answer to dump. Since 3.5, a server with
// localSessionsEnabled lists its local sessions first, after a line like "Local Session Sets
// (2)/(17):" for 17 sessions.
func (v *seen) dump(text string) {
	_, rest, is := strings.Cut(text, "Local Session Sets (")
	if !is {
		v.local = 0
		return
	}
	_, rest, _ = strings.Cut(rest, ")/(")
	number, _, _ := strings.Cut(rest, ")")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		v.local = n
	}
}

// release returns the version without the number of the build.
func (v *seen) release() string {
	release, _, _ := strings.Cut(v.version, "-")
	return release
}

// minor returns the minor release of version 3, e.g. 9 for 3.9.5, or -1.
func (v *seen) minor() int {
	parts := strings.SplitN(v.version, ".", 3)
	if len(parts) < 3 || parts[0] != "3" {
		return -1
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return -1
	}
	return n
}
