package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/proto"
)

// auth is a scheme with the credentials that prove one identity.
type auth struct {
	scheme      string
	credentials []byte
}

// AddAuth proves an identity on this connection and on every later one, e.g. with
// scheme "digest" and credentials "user:password".
//
// If the server rejects the credentials, AddAuth returns [ErrAuthFailed], the server closes
// the connection, and the Client forgets the credentials. If the connection is lost or
// there is none, AddAuth waits for the next one and sends them on it.
func (c *Client) AddAuth(ctx context.Context, scheme string, credentials []byte) error {
	k := c.core
	a := auth{scheme, slices.Clone(credentials)}
	fail := func(code Code, cause error) error { return &Error{Op: "auth", Code: code, Err: cause} }
	for {
		if err := c.Sync(ctx, "/"); err != nil && !isRefusal(err) {
			return err // Sync waits for a connection
		}
		p := &authCall{auth: a, ready: make(chan Code, 1)}
		k.mu.Lock()
		if err := k.end.failure("auth", ""); err != nil {
			k.mu.Unlock()
			return err
		}
		l := k.link
		if l != nil {
			l.pushAuth(p)
		}
		k.mu.Unlock()
		if l == nil {
			continue
		}
		select {
		case code := <-p.ready:
			switch code {
			case 0:
				k.mu.Lock()
				k.auths = append(slices.Clone(k.auths), a)
				k.mu.Unlock()
				return nil
			case ErrConnectionLoss:
				continue
			}
			k.mu.Lock()
			k.states.publish(StateChange{State: StateAuthFailed, Session: k.session.ID, Err: code})
			k.mu.Unlock()
			return fail(code, nil)
		case <-ctx.Done():
			return fail(0, context.Cause(ctx))
		}
	}
}

// isRefusal reports whether err is a read-only server's refusal. A refusal shows that we
// have a connection.
func isRefusal(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Code == ErrNotReadOnly
}

// authenticate proves all identities on a new connection before we send anything else on
// it. A refusal ends the Client: if we reconnected, the server would refuse the same
// credentials again.
func (c *connector) authenticate(h *greeting, auths []auth, t target) error {
	refuse := func(err error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.end.err == nil {
			c.end.err, c.end.code = err, ErrAuthFailed
			c.watches.endAll(err)
			c.leases.endAll(ErrSessionExpired)
			c.states.publish(StateChange{State: StateAuthFailed, Session: c.session.ID, Err: err})
		}
		return err
	}
	if c.cfg.sasl != nil {
		host, _, _ := net.SplitHostPort(t.name)
		if err := h.converse(c.cfg.sasl.Begin(host)); err != nil {
			if _, ok := err.(*refusedError); ok {
				return refuse(err)
			}
			return err
		}
	}
	for _, a := range auths {
		reply, _, err := h.ask(proto.XidAuth, proto.OpAuth, &proto.AuthPacket{Scheme: a.scheme, Auth: a.credentials})
		if err != nil {
			return err
		}
		if reply.Err != 0 {
			return refuse(&refusedError{fmt.Errorf("scheme %s: %w", a.scheme, reply.Err)})
		}
	}
	return nil
}

// refusedError means that the server rejected the client's credentials.
type refusedError struct{ cause error }

func (e *refusedError) Error() string        { return "authentication refused: " + e.cause.Error() }
func (e *refusedError) Unwrap() error        { return e.cause }
func (e *refusedError) Is(target error) bool { return target == error(ErrAuthFailed) }

// errNoChallenge is the error of a server without a JAAS section, which replies nothing to
// the first token.
var errNoChallenge = errors.New("sasl: the server sends no challenge; it may have no SASL configured (authProvider.sasl and a JAAS file)")

// converse runs a SASL conversation to its end.
func (h *greeting) converse(s SASLConversation) error {
	token, done, err := s.Next(nil)
	for xid := int32(1); err == nil; xid++ {
		reply, r, aerr := h.ask(xid, proto.OpSASL, &proto.SASLRequest{Token: token})
		if aerr != nil {
			return aerr
		}
		var answer proto.SASLResponse
		answer.Decode(&r)
		switch {
		case reply.Err != 0:
			return &refusedError{fmt.Errorf("sasl: the server refuses (%v)", reply.Err)}
		case r.Err() != nil || answer.Token == nil && !done:
			return &refusedError{errNoChallenge}
		}
		if done {
			return nil
		}
		token, done, err = s.Next(answer.Token)
		if err == nil && done && token == nil {
			return nil
		}
	}
	return &refusedError{fmt.Errorf("sasl: %w", err)}
}

// SASLMechanism starts a conversation for every connection. It must be safe for
// concurrent use.
type SASLMechanism interface {
	// Begin starts a conversation. host is the host name in the connect string.
	Begin(host string) SASLConversation
}

// SASLConversation is the client's side of one authentication.
type SASLConversation interface {
	// Next returns the response to the server's token, which is nil for the first call. done
	// means that the conversation ends after the server's reply to this response. A nil
	// response with done is not sent.
	Next(challenge []byte) (response []byte, done bool, err error)
}

// DigestMD5 is the mechanism that ZooKeeper servers call DIGEST-MD5 and configure with a
// JAAS section of DigestLoginModule. It is obsolete: it doesn't send the password in the
// clear, but an eavesdropper can guess passwords offline. You should prefer TLS.
func DigestMD5(user, password string) SASLMechanism { return digestMD5{user, password} }

type digestMD5 struct{ user, password string }

// Begin implements [SASLMechanism].
func (m digestMD5) Begin(string) SASLConversation { return sasl.NewClient(m.user, m.password) }
