package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/jaas"
	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
)

// SASL configures authentication with SASL DIGEST-MD5.
type SASL struct {
	Users map[string]string // passwords by user
	// SuperUser is the name of the user that has every permission.
	SuperUser string
	// AllowFailed lets a client that fails to authenticate stay, without an identity.
	// It has no effect if Auth.Require includes sasl.
	AllowFailed bool
}

// schemeSASL is the scheme of the identity that SASL proves.
const schemeSASL = "sasl"

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
		ids := []proto.ID{{Scheme: schemeSASL, ID: user}, {Scheme: schemeSuper}}
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
	case slices.Contains(s.cfg.Auth.Require, schemeSASL):
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

// superByPassword is the user whose password may be in the configuration instead of the
// JAAS file.
const superByPassword = "super"

// saslFromZooCfg translates the authentication settings: which clients must
// authenticate, and how SASL does it.
func (c *Config) saslFromZooCfg(z *zoocfg.Config) error {
	a := &z.Auth
	switch {
	case a.RequireClientSASL:
		c.Auth.Require = []string{schemeSASL}
	case a.EnforceEnabled:
		c.Auth.Require = a.EnforceSchemes
	}
	for _, class := range a.Providers {
		c.Auth.X509 = c.Auth.X509 || strings.HasSuffix(class, ".X509AuthenticationProvider")
		c.Auth.SASLScheme = c.Auth.SASLScheme || strings.HasSuffix(class, ".SASLAuthenticationProvider")
		c.Auth.EnsembleScheme = c.Auth.EnsembleScheme || strings.HasSuffix(class, ".EnsembleAuthenticationProvider")
		c.Auth.KeyScheme = c.Auth.KeyScheme || strings.HasSuffix(class, ".KeyAuthenticationProvider")
	}
	if a.JAASFile == "" {
		return nil
	}
	text, err := smallfile.Read(a.JAASFile)
	if err != nil {
		return fmt.Errorf("java.security.auth.login.config: %w", err)
	}
	section := cmp.Or(a.SASLServerContext, defaultSection)
	users, err := jaas.Users(string(text), section)
	if errors.Is(err, jaas.ErrNoSection) && section == defaultSection && len(c.Auth.Require) == 0 {
		// The file has another purpose, e.g. the quorum's SASL.
		return nil
	}
	if err != nil {
		return fmt.Errorf("java.security.auth.login.config: %s: %w", a.JAASFile, err)
	}
	if a.SASLSuperPassword != "" {
		users[superByPassword] = a.SASLSuperPassword
	}
	c.Auth.SASL = &SASL{Users: users, SuperUser: a.SASLSuperUser, AllowFailed: a.AllowSASLFailed}
	return nil
}

// defaultSection is the server's section of a JAAS file.
const defaultSection = "Server"
