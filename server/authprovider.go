package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/proto"
)

// AuthProvider authenticates clients with a scheme of its own, for addAuth and in ACLs.
// It must be safe for concurrent use.
//
// There is no method that matches an identity against an ACL. Every server decides
// about a write by itself, so an ACL entry matches exactly the identity that it names,
// on all servers alike. A client that belongs to groups gets an identity for each
// group.
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

// AuthRequest is what a client sent with addAuth.
type AuthRequest struct {
	Auth    []byte // valid until Authenticate returns
	Session int64
	Remote  net.Addr
	TLS     *tls.ConnectionState // nil in plaintext
}

// authLimit bounds the time an AuthProvider may take.
const authLimit = 10 * time.Second

// ownSchemes are reserved: the server gives them a meaning.
var ownSchemes = []string{"auth", "world", "digest", "ip", schemeX509, schemeSASL, "super", schemeEnsemble, schemeOptions}

// checkProviders reports providers with a scheme that can't be used.
func (c *Config) checkProviders() error {
	var seen []string
	if c.Auth.KeyScheme {
		seen = append(seen, schemeKey)
	}
	for _, p := range c.Auth.Providers {
		scheme := p.Scheme()
		if scheme == "" || strings.Contains(scheme, ":") || slices.Contains(ownSchemes, scheme) || slices.Contains(seen, scheme) {
			return fmt.Errorf("AuthProviders: the scheme %q is empty, has a colon, is ZooKeeper's own or stands twice", scheme)
		}
		seen = append(seen, scheme)
	}
	return nil
}

// prove returns the identities that an auth packet proves.
func (c *conn) prove(w *work, req *proto.AuthPacket) ([]proto.ID, bool) {
	for _, p := range c.s.cfg.Auth.Providers {
		if p.Scheme() == req.Scheme {
			return c.ask(w, p, req)
		}
	}
	return c.s.identify(req)
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
		err = checkIDs(p.Scheme(), ids)
	}
	if err != nil {
		c.complain("an authentication provider refuses a client", "scheme", req.Scheme, "error", err)
		return nil, false
	}
	return ids, true
}

// checkIDs rejects identities that a provider must not return.
func checkIDs(scheme string, ids []proto.ID) error {
	if len(ids) == 0 {
		return fmt.Errorf("the provider of %q has returned no identity", scheme)
	}
	for _, id := range ids {
		if id.Scheme != "super" && (id.Scheme != scheme || id.ID == "") {
			return fmt.Errorf("the provider of %q has returned the identity %q:%q", scheme, id.Scheme, id.ID)
		}
	}
	return nil
}
