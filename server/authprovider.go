package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// AuthProvider proves who clients are by a scheme of its own, for addAuth and in
// ACLs. It is called by many goroutines at once.
//
// There is no method that matches an identity against an ACL: an entry matches
// the identity that it names, on every server alike, since every server decides
// about a write by itself. A client that belongs to groups gets an identity for
// each of them.
type AuthProvider interface {
	// Scheme is the name that clients give to addAuth, and the scheme of the
	// identities; none of ZooKeeper's own.
	Scheme() string
	// Authenticate returns the identities that the client has proved, at least
	// one: of the provider's scheme or, for one who may do everything, of the
	// scheme super. Its error is logged, and the client only hears that it has
	// failed. Until it returns, and at most until ctx ends, the requests that the
	// client has sent behind wait, and nobody else's.
	Authenticate(ctx context.Context, r AuthRequest) ([]proto.ID, error)
}

// AuthRequest is what a client has sent with addAuth.
type AuthRequest struct {
	Auth    []byte // valid until Authenticate returns
	Session int64
	Remote  net.Addr
	TLS     *tls.ConnectionState // nil in plaintext
}

// authLimit is how long an AuthProvider may take.
const authLimit = 10 * time.Second

// ownSchemes have a meaning already.
var ownSchemes = []string{"auth", "world", "digest", "ip", schemeX509, schemeSASL, "super", schemeEnsemble, schemeOptions}

// checkProviders reports providers whose scheme cannot be used.
func (c *Config) checkProviders() error {
	var seen []string
	if c.KeyScheme {
		seen = append(seen, schemeKey)
	}
	for _, p := range c.AuthProviders {
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
	for _, p := range c.s.cfg.AuthProviders {
		if p.Scheme() == req.Scheme {
			return c.ask(w, p, req)
		}
	}
	return c.s.identify(req)
}

// ask has a provider decide. Nothing is locked while it does.
func (c *conn) ask(w *work, p AuthProvider, req *proto.AuthPacket) ([]proto.ID, bool) {
	c.settle(w)
	c.flush()
	ctx, cancel := context.WithTimeout(context.Background(), authLimit)
	defer cancel()
	go func() {
		select {
		case <-c.s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	r := AuthRequest{Auth: req.Auth, Session: c.sid, Remote: c.nc.RemoteAddr()}
	if t, ok := c.nc.(*tlsConn); ok {
		if stream := t.stream.Load(); stream != nil {
			state := stream.ConnectionState()
			r.TLS = &state
		}
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

// checkIDs refuses identities that a provider must not give.
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
