package quorum

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Dial opens a stream to server to at addr. It returns the identity that the server
// reports. An error of type *RefusedError means that the server is up but refuses to talk
// to us.
func (h *Hub) Dial(ctx context.Context, kind Kind, addr, to string) (net.Conn, Identity, error) {
	if h.ctx.Err() != nil {
		return nil, Identity{}, net.ErrClosed // begin no lookup
	}
	ctx, cancel := context.WithTimeout(ctx, HandshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(h.ctx, cancel)
	defer stop()
	// Start a new attempt instead of waiting for the kernel, which resends the SYN after
	// increasingly long pauses. The path may work again by now.
	connect, stopConnecting := context.WithTimeout(ctx, ConnectTimeout)
	raw, err := h.network.Dial(connect, addr)
	stopConnecting()
	if err != nil {
		return nil, Identity{}, err
	}
	conn, err := h.track(raw)
	if err != nil {
		return nil, Identity{}, err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = conn.Close() })
	var theirs Identity
	stream, err := h.secure(ctx, conn, addr)
	if err == nil {
		theirs, err = h.introduce(stream, kind, addr, to)
	}
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		err = h.refusal(err, RefusedError{Kind: kind, Addr: addr, To: to})
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) && !errors.Is(ctx.Err(), context.Canceled) {
			BlamePath(conn)
		}
		return nil, theirs, err
	}
	return stream, theirs, nil
}

// secure is the dialler's half of the steps before the handshake.
func (h *Hub) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	if h.tls == nil || h.tls.DialPlain {
		return conn, nil
	}
	return h.tls.client(ctx, conn, addr)
}

// introduce is the dialler's half of the handshake.
func (h *Hub) introduce(conn net.Conn, kind Kind, addr, to string) (Identity, error) {
	ours := h.Identity()
	by := time.Now().Add(HandshakeTimeout)
	said := hello{version: version, kind: kind, code: beats, to: to, from: ours, challenge: newChallenge()}
	hear := readHello
	if h.sasl != nil && h.sasl.Login {
		said.version = saslVersion
		hear = func(conn net.Conn, by time.Time) (hello, error) { return h.sasl.login(conn, &said, by) }
	}
	if err := writeHello(conn, &said, by); err != nil {
		return Identity{}, err
	}
	answer, err := hear(conn, by)
	var distrusted *saslError
	if err != nil && !errors.As(err, &distrusted) {
		return Identity{}, fmt.Errorf("handshake with server %s at %s: %w", to, addr, err)
	}
	code := h.understood(&said, &answer)
	if distrusted != nil {
		code, answer.from = distrusted.code, Identity{}
	}
	if code == Accepted {
		if code, err = verifyAnswer(conn, ours, &said, &answer, by); err != nil {
			return Identity{}, err
		}
	}
	if code != Accepted {
		err := &RefusedError{Kind: kind, Addr: addr, To: to, Code: code, Ours: ours, Theirs: answer.from}
		h.blame(err, distrusted)
		h.complain(err)
		return answer.from, err
	}
	return answer.from, nil
}

// understood returns the code that results from the answer to a handshake.
func (h *Hub) understood(said, answer *hello) Code {
	switch {
	case answer.version != said.version && said.version == saslVersion && answer.code == WrongVersion:
		return NoSASL // the other server doesn't know SASL
	case answer.version != said.version && answer.code != NeedTLS && answer.code != NeedSASL, !answer.known():
		return WrongVersion
	case answer.kind != said.kind, answer.code == challenged:
		return wrongAnswer
	case answer.code == Accepted:
		return judge(said.kind, said.from, answer.from, said.to, answer.from.ServerID)
	}
	return answer.code
}

// blame adds the details that only this server knows to the reason for a refusal.
func (h *Hub) blame(err *RefusedError, distrusted *saslError) {
	switch {
	case distrusted != nil:
		err.Cause = distrusted
	case err.Code == BadLogin && h.sasl != nil:
		err.Code, err.Cause = LoginRefused, fmt.Errorf("user %.64q", h.sasl.User)
	case err.Code == BadCertificate:
		err.Code, err.Cause = CertificateRefused, errors.New("it is not that of server "+err.Ours.ServerID)
		if h.tls != nil {
			err.Cause = fmt.Errorf("it is not that of server %s: %s", err.Ours.ServerID, h.tls.ours())
		}
	}
}
