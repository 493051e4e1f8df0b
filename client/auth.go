package client

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// auth is what proves an identity.
type auth struct {
	scheme      string
	credentials []byte
}

// AddAuth proves an identity on this connection, and again on every later one:
// scheme "digest" with "user:password", or whatever the server knows.
//
// If they are refused the error is [ErrAuthFailed], the server closes the
// connection, and the credentials are forgotten. If the connection is lost or
// there is none, they are sent on the next one; AddAuth waits for that.
func (c *Client) AddAuth(ctx context.Context, scheme string, credentials []byte) error {
	k := c.core
	a := auth{scheme, slices.Clone(credentials)}
	fail := func(code Code, cause error) error { return &Error{Op: "auth", Code: code, Err: cause} }
	for {
		if err := c.Sync(ctx, "/"); err != nil && !isRefusal(err) {
			return err // waits for a connection
		}
		p := &authCall{auth: a, ready: make(chan Code, 1)}
		k.mu.Lock()
		if k.final != nil {
			defer k.mu.Unlock()
			return fail(k.finalCode, k.final)
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
			k.publish(StateChange{State: StateAuthFailed, Session: k.sess.ID, Err: code})
			k.mu.Unlock()
			return fail(code, nil)
		case <-ctx.Done():
			return fail(0, context.Cause(ctx))
		}
	}
}

// isRefusal reports whether a server answered.
func isRefusal(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Code == ErrNotReadOnly
}

// pushAuth appends an auth to the output; core.mu is held.
func (l *link) pushAuth(p *authCall) {
	var mark int
	l.out, mark = proto.BeginFrame(l.out)
	h := proto.RequestHeader{Xid: proto.XidAuth, Op: proto.OpAuth}
	q := proto.AuthPacket{Scheme: p.scheme, Auth: p.credentials}
	l.out = proto.EndFrame(q.Append(h.Append(l.out)), mark)
	l.auths.push(p)
	l.kick()
}

// authenticate proves all identities on a new connection, before anything else
// is sent on it. A refusal ends the Client: it would be refused again.
func (c *core) authenticate(h *greeting, auths []auth, t target) error {
	refuse := func(err error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.final == nil {
			c.final, c.finalCode = err, ErrAuthFailed
			c.watches.endAll(err)
			c.endLeases()
			c.publish(StateChange{State: StateAuthFailed, Session: c.sess.ID, Err: err})
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

// refusedError says that a server does not believe who we are.
type refusedError struct{ cause error }

func (e *refusedError) Error() string        { return "authentication refused: " + e.cause.Error() }
func (e *refusedError) Unwrap() error        { return e.cause }
func (e *refusedError) Is(target error) bool { return target == error(ErrAuthFailed) }

// converse lets a SASL conversation take place.
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
