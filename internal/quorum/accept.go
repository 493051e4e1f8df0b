package quorum

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

func (h *Hub) accept(ln net.Listener) {
	defer h.wg.Done()
	var told time.Time
	for {
		raw, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || h.ctx.Err() != nil {
				return
			}
			// E.g. out of file descriptors: keep the port open.
			if time.Since(told) >= refusalPause {
				told = time.Now()
				h.log.Error("accept on the quorum port failed: trying again", "addr", ln.Addr().String(), "err", err)
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-h.ctx.Done():
				return
			}
			continue
		}
		conn, err := h.track(raw)
		if err != nil {
			return
		}
		h.shaking.begin(conn)
		h.wg.Add(1)
		go func() {
			defer h.wg.Done()
			h.serve(conn)
		}()
	}
}

// serve is the acceptor's half of the handshake.
func (h *Hub) serve(conn *tracked) {
	stream, cert, err := h.admit(conn)
	var a Acceptor
	var in *hello
	if err == nil {
		a, in, err = h.receive(stream, cert)
	}
	if err != nil {
		h.log.Debug("connection to the quorum port ended in its handshake", "remote", conn.RemoteAddr().String(), "err", err)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			drain(conn)
		}
		_ = conn.Close()
	}
	h.shaking.end(conn)
	if err == nil {
		h.enter(conn, in.kind, in.from)
		a(stream, in.from)
	}
}

// admit detects whether a caller speaks TLS, and checks whether it may or must. The
// certificate is nil for plaintext.
func (h *Hub) admit(conn net.Conn) (net.Conn, *x509.Certificate, error) {
	by := time.Now().Add(HandshakeTimeout)
	detect := by
	if h.tls != nil && h.tls.Detect > 0 {
		detect = time.Now().Add(h.tls.Detect)
	}
	var first [1]byte
	if err := conn.SetReadDeadline(detect); err != nil {
		return nil, nil, err
	}
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return nil, nil, err
	}
	unread := &unreadConn{Conn: conn, first: first[:]}
	who := RefusedError{Addr: conn.RemoteAddr().String(), Incoming: true}
	switch {
	case first[0] != recordHandshake && (h.tls == nil || h.tls.AcceptPlain):
		return unread, nil, nil
	case first[0] != recordHandshake:
		return nil, nil, h.refusePlain(unread, by, who)
	case h.tls == nil:
		// A TLS client recognizes any plaintext answer as not TLS.
		who.Code = NeedTLS
		h.complain(&who)
		return nil, nil, errors.Join(&who, writeHello(conn, &hello{version: version, kind: Probe, code: NoTLS}, by))
	}
	stream, cert, err := h.tls.server(unread, by)
	if err != nil {
		return nil, nil, h.refusal(err, who)
	}
	return stream, cert, nil
}

// ErrPlain refuses a caller without TLS.
var ErrPlain = errors.New("it does not use TLS, which this server requires (sslQuorum)")

// Accept performs the TLS handshake with a caller that no list of servers names, e.g. an
// external observer. With VerifyCaller, its certificate must name the host that it calls
// from.
func (t *TLS) Accept(conn net.Conn, by time.Time) (net.Conn, error) {
	var first [1]byte
	if err := conn.SetReadDeadline(by); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return nil, err
	}
	unread := &unreadConn{Conn: conn, first: first[:]}
	switch {
	case first[0] != recordHandshake && t.AcceptPlain:
		return unread, nil
	case first[0] != recordHandshake:
		return nil, ErrPlain
	}
	stream, cert, err := t.server(unread, by)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if from := hostOf(conn.RemoteAddr()); t.VerifyCaller && cert != nil && !t.isAt(cert, from) {
		return nil, &certificateError{cert, fmt.Errorf("it does not name %s, where the call comes from", from)}
	}
	return stream, nil
}

// refusePlain tells a server that speaks plaintext that this server requires TLS.
func (h *Hub) refusePlain(conn net.Conn, by time.Time, who RefusedError) error {
	in, err := readHello(conn, by)
	if err != nil {
		return err
	}
	who.Kind, who.Code, who.Theirs = in.kind, NoTLS, in.from
	h.complain(&who)
	// This server identifies itself only to servers that can authenticate.
	return errors.Join(&who, writeHello(conn, &hello{version: version, kind: in.kind, code: NeedTLS}, by))
}

func (h *Hub) receive(conn net.Conn, cert *x509.Certificate) (Acceptor, *hello, error) {
	by := time.Now().Add(HandshakeTimeout)
	in, err := readHello(conn, by)
	if err != nil {
		return nil, &in, h.refusal(err, RefusedError{Addr: conn.RemoteAddr().String(), Incoming: true})
	}
	proof, code, cause := []byte(nil), WrongVersion, error(nil)
	if in.known() {
		if proof, code, cause = h.sasl.authenticate(conn, &in, h.Identity(), by); code == Accepted && cause != nil {
			return nil, &in, cause // the connection broke
		}
	}
	// Read it only now: this server's identity may have changed in the meantime.
	ours, a := h.asOfNow(&in)
	answer := hello{version: in.version, kind: in.kind, code: code, to: in.from.ServerID}
	switch code {
	case Accepted:
		answer.from, answer.challenge = ours, newChallenge()
		if in.from.Nonce != 0 && in.from.Nonce == ours.Nonce {
			answer.code = WrongTarget // this server's own message to another server
		} else if cause = h.tls.mayBe(in.from.ServerID, cert, conn.RemoteAddr()); cause != nil {
			answer.code = BadCertificate
		} else if answer.code = judge(in.kind, ours, in.from, in.to, ours.ServerID); answer.code == Accepted && a == nil {
			answer.code = NotReady
		}
	case WrongVersion:
		answer.version = version
		if h.sasl == nil || !h.sasl.Require {
			answer.from = ours
		}
	default: // this server identifies itself only to servers that can authenticate
		answer.version = saslVersion
	}
	if answer.code == Accepted && provable(ours, &in.from) {
		answer.proof = ours.Cluster.answerProof(&in, &answer)
	}
	said := answer.append(nil)
	if proof != nil {
		said = appendToken(said, proof)
	}
	if answer.code == Accepted {
		return h.conclude(conn, a, ours, &in, &answer, said, by)
	}
	refused := &RefusedError{Kind: in.kind, Addr: conn.RemoteAddr().String(), To: in.to, Code: answer.code.asKnownHere(), Ours: ours,
		Theirs: in.from, Incoming: true, Cause: cause}
	// Log before answering: the refusal must be noted before the caller's next action.
	h.complain(refused)
	return nil, &in, errors.Join(refused, write(conn, said, by))
}

// conclude accepts a caller: it sends the answer, and verifies that the caller belongs to
// the ensemble it names.
func (h *Hub) conclude(conn net.Conn, a Acceptor, ours Identity, in, answer *hello, said []byte, by time.Time) (Acceptor, *hello, error) {
	if err := write(conn, said, by); err != nil {
		return nil, in, err
	}
	code, err := verifyCaller(conn, ours, in, answer, by)
	if code != Accepted {
		refused := &RefusedError{Kind: in.kind, Addr: conn.RemoteAddr().String(), To: in.to, Code: code, Ours: ours, Theirs: in.from, Incoming: true}
		h.complain(refused)
		return nil, in, refused
	}
	in.from.Beats = in.code == beats
	return a, in, err
}

// asOfNow returns this server's current identity, and the acceptor of the stream that a
// caller asks for.
func (h *Hub) asOfNow(in *hello) (Identity, Acceptor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !in.known() {
		return h.self, nil
	}
	return h.self, h.acceptors[in.kind]
}
