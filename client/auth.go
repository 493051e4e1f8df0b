package client

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// auth holds the credentials that prove one identity.
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
		if k.end.err != nil {
			defer k.mu.Unlock()
			return fail(k.end.code, k.end.err)
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
			k.publish(StateChange{State: StateAuthFailed, Session: k.session.ID, Err: code})
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

// pushAuth appends an auth request to the output. The caller holds core.mu.
func (l *link) pushAuth(p *authCall) {
	var mark int
	l.out.buf, mark = proto.BeginFrame(l.out.buf)
	h := proto.RequestHeader{Xid: proto.XidAuth, Op: proto.OpAuth}
	q := proto.AuthPacket{Scheme: p.scheme, Auth: p.credentials}
	l.out.buf = proto.EndFrame(q.Append(h.Append(l.out.buf)), mark)
	l.requests.auths.push(p)
	l.kick()
}

// authenticate proves all identities on a new connection before we send anything else on
// it. A refusal ends the Client: if we reconnected, the server would refuse the same
// credentials again.
func (c *core) authenticate(h *greeting, auths []auth, t target) error {
	refuse := func(err error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.end.err == nil {
			c.end.err, c.end.code = err, ErrAuthFailed
			c.watches.endAll(err)
			c.endLeases()
			c.publish(StateChange{State: StateAuthFailed, Session: c.session.ID, Err: err})
		}
		return err
	}
	if c.cfg.sasl != nil {
		host, _, _ := net.SplitHostPort(t.name)
		if err := c.converse(h, c.cfg.sasl.Begin(host)); err != nil {
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

// refusedError says that the server rejected the client's credentials.
type refusedError struct{ cause error }

func (e *refusedError) Error() string        { return "authentication refused: " + e.cause.Error() }
func (e *refusedError) Unwrap() error        { return e.cause }
func (e *refusedError) Is(target error) bool { return target == error(ErrAuthFailed) }

// converse runs a SASL conversation to its end.
func (c *core) converse(h *greeting, s SASLConversation) error {
	token, done, err := s.Next(nil)
	for xid := int32(1); err == nil; xid++ {
		reply, r, aerr := h.ask(xid, proto.OpSASL, &proto.SASLRequest{Token: token})
		if aerr != nil {
			return aerr
		}
		var answer proto.SASLResponse
		if answer.Decode(&r); reply.Err != 0 || r.Err() != nil || answer.Token == nil && !done {
			return &refusedError{fmt.Errorf("sasl: the server refuses (%v)", reply.Err)}
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
