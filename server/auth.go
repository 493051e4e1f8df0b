package server

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/proto"
)

// AuthProvider authenticates clients with its own scheme, for addAuth and in ACLs. It must
// be safe for concurrent use.
//
// There is no method that matches an identity against an ACL. Every server decides
// independently about a write, so an ACL entry matches exactly the identity that it names,
// on all servers alike. A client that belongs to groups gets an identity for each group.
type AuthProvider interface {
	// Scheme is the name that clients pass to addAuth, and the scheme of the
	// identities. It must not be one of ZooKeeper's schemes.
	Scheme() string
	// Authenticate returns the identities that the client has proved, at least one.
	// Their scheme is the provider's or, for a client that may do everything, super.
	// The server logs the error; the client only learns that authentication failed. The
	// requests that the client sent after addAuth wait until Authenticate returns, at
	// most until ctx ends. Other clients don't wait.
	Authenticate(ctx context.Context, r AuthRequest) ([]proto.ID, error)
}

// AuthRequest is a client's addAuth request.
type AuthRequest struct {
	Auth    []byte // valid until Authenticate returns
	Session int64
	Remote  net.Addr
	TLS     *tls.ConnectionState // nil in plaintext
}

// SASL configures authentication with SASL DIGEST-MD5.
type SASL struct {
	Users map[string]string // passwords by user
	// SuperUser is the name of the user that has every permission.
	SuperUser string
	// AllowFailed keeps the connection of a client that fails to authenticate, without an
	// identity. It has no effect if Auth.Require includes sasl.
	AllowFailed bool
}

// authLimit is the time limit for an AuthProvider.
const authLimit = 10 * time.Second

// prove returns the identities that an auth packet proves.
func (c *conn) prove(w *work, req *proto.AuthPacket) ([]proto.ID, bool) {
	for _, p := range c.s.cfg.Auth.Providers {
		if p.Scheme() == req.Scheme {
			return c.ask(w, p, req)
		}
	}
	return c.s.schemes.Identify(req)
}

// ask calls a provider. It holds no lock during the call.
func (c *conn) ask(w *work, p AuthProvider, req *proto.AuthPacket) ([]proto.ID, bool) {
	c.reader.settle(w)
	c.replies.flush()
	ctx, cancel := context.WithTimeout(context.Background(), authLimit)
	defer cancel()
	go func() {
		select {
		case <-c.s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	r := AuthRequest{Auth: req.Auth, Session: c.session.id, Remote: c.nc.RemoteAddr()}
	if t, ok := c.nc.(*tlsport.Conn); ok {
		r.TLS = t.State()
	}
	ids, err := p.Authenticate(ctx, r)
	if err == nil {
		err = schemes.CheckProved(p.Scheme(), ids)
	}
	if err != nil {
		c.complain("an authentication provider rejected a client", "scheme", req.Scheme, "error", err)
		return nil, false
	}
	return ids, true
}

// mayNot reports whether the client must authenticate before op.
func (cs *clientSession) mayNot(op proto.Op) bool {
	need := cs.c.s.cfg.Auth.Require
	if len(need) == 0 || op == proto.OpAuth || op == proto.OpSASL {
		return false
	}
	return !slices.ContainsFunc(cs.ids.All(), func(id proto.ID) bool { return slices.Contains(need, id.Scheme) })
}

// authenticate answers auth. It doesn't wait for the requests before it; the requests after
// it have the identity.
func (c *conn) authenticate(w *work, h proto.RequestHeader, body []byte) bool {
	var req proto.AuthPacket
	r := proto.NewReader(body)
	if req.Decode(&r); r.Err() != nil {
		return c.garbled(r.Err())
	}
	if req.Scheme == schemes.Options {
		if !c.session.setOption(string(req.Auth)) {
			return c.turnAway(w, h, proto.ErrAuthFailed)
		}
		c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid}, nil)
		return true
	}
	ids, ok := c.prove(w, &req)
	if !ok {
		c.s.stats.AuthFailed.Add(1)
		c.complain("authentication failed", "scheme", req.Scheme)
		if req.Scheme == schemes.Ensemble && c.s.cfg.ensembleScheme() {
			return false // the client should try another server
		}
		return c.turnAway(w, h, proto.ErrAuthFailed)
	}
	if !c.session.addIdentities(ids...) {
		return c.turnAway(w, h, proto.ErrAuthFailed)
	}
	c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid}, nil)
	return true
}

// addIdentities adds identities that the client has proved. It returns false if the client
// would have too many. The reader calls it.
func (cs *clientSession) addIdentities(more ...proto.ID) bool {
	n, bytes, ok := cs.ids.Add(more...)
	if !ok {
		cs.c.s.stats.AuthFailed.Add(1)
		cs.c.complain("closing a client that has too many identities",
			"identities", n, "bytes", bytes, "most", schemes.MaxIdentities, "mostBytes", schemes.MaxBytes)
	}
	return ok
}

// negotiate answers sasl. It doesn't wait for the requests before it. Without SASL it
// answers a null token, after which clients continue without SASL.
func (c *conn) negotiate(w *work, h proto.RequestHeader, body []byte) bool {
	var req proto.SASLRequest
	r := proto.NewReader(body)
	if req.Decode(&r); r.Err() != nil || req.Token == nil {
		return false
	}
	settings := c.s.cfg.Auth.SASL
	if settings == nil {
		c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid}, &proto.SASLResponse{})
		return true
	}
	if c.session.sasl == nil {
		c.session.sasl = sasl.NewServer(settings.Users)
	}
	token, user, err := c.session.sasl.Step(req.Token)
	if err != nil {
		return c.saslFailed(w, h, err)
	}
	if user != "" {
		ids := []proto.ID{{Scheme: schemes.SASL, ID: user}, {Scheme: schemes.Super}}
		super := user == settings.SuperUser
		if !super {
			ids = ids[:1]
		}
		if !c.session.addIdentities(ids...) {
			return c.turnAway(w, h, proto.ErrAuthFailed)
		}
		if super {
			c.s.log.Info("a client is the super user by SASL", "client", c.nc.RemoteAddr(), "session", sessionID(c.session.id), "user", user)
		}
	}
	c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid}, &proto.SASLResponse{Token: token})
	return true
}

// saslFailed answers a client that failed to authenticate.
func (c *conn) saslFailed(w *work, h proto.RequestHeader, err error) bool {
	s := c.s
	s.stats.AuthFailed.Add(1)
	code := proto.ErrAuthFailed
	switch {
	case slices.Contains(s.cfg.Auth.Require, schemes.SASL):
		code = proto.ErrSessionClosedRequireSASL
	case s.cfg.Auth.SASL.AllowFailed:
		code = proto.Ok
	}
	c.complain("sasl authentication failed", "stays", code == proto.Ok, "error", err)
	c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid, Err: code}, &proto.SASLResponse{})
	if code != proto.Ok {
		c.endWith()
	}
	return true
}

// secured does the handshake with a client that connected to a TLS port.
func (c *conn) secured() bool {
	t, ok := c.nc.(*tlsport.Conn)
	if !ok {
		return true
	}
	st := &c.s.stats
	st.Handshaking.Add(1)
	ids, err := t.Identify()
	st.Handshaking.Add(-1)
	if err != nil {
		st.HandshakesFailed.Add(1)
		select {
		case <-c.s.done:
			return false
		default:
		}
		c.complain("closing a client: the TLS handshake failed", "error", tlsport.Explain(err))
		return false
	}
	if !c.session.addIdentities(ids...) {
		return false
	}
	for _, id := range ids {
		if id.Scheme == schemes.Super {
			c.s.log.Info("a client is the super user by its certificate", "client", c.nc.RemoteAddr(), "subject", id.ID)
		}
	}
	return true
}

// whoAmI lists the identities without their secrets.
func whoAmI(q *request, out []byte) []byte {
	resp := proto.WhoAmIResponse{IDs: schemes.Public(q.ids)}
	return resp.Append(out)
}

// builtinSchemes returns the proofs of ZooKeeper's own schemes.
func builtinSchemes(s *Server) schemes.Builtin {
	a := &s.cfg.Auth
	b := schemes.Builtin{
		DigestDisabled: a.DigestDisabled, DigestAlg: a.DigestAlg, SuperDigest: a.SuperDigest,
		Ensemble: s.cfg.ensembleScheme(), EnsembleNames: a.EnsembleNames, Stats: &s.stats,
	}
	if a.KeyScheme {
		b.Key = func() (string, bool) {
			s.tree.RLock()
			defer s.tree.RUnlock()
			n := s.tree.Get(schemes.KeyPath)
			if n == nil {
				return "", false
			}
			return string(n.Data()), true
		}
	}
	return b
}
