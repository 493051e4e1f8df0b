package server

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/jaas"
	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
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

// superByPassword is the user whose password may be in the configuration instead of the
// JAAS file.
const superByPassword = "super"

// saslFromZooCfg translates the authentication settings: which clients must
// authenticate, and how SASL does it.
func (c *Config) saslFromZooCfg(z *zoocfg.Config) error {
	a := &z.Auth
	switch {
	case a.RequireClientSASL:
		c.Auth.Require = []string{schemes.SASL}
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
