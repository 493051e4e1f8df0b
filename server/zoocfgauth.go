package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/jaas"
	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// tlsFromZooCfg translates the ssl.* settings for clients, if a port uses them.
func (c *Config) tlsFromZooCfg(z *zoocfg.Config) error {
	secure, unified := z.SecureClientPort != zoocfg.Unset, z.PortUnification && c.ClientAddr != ""
	if !secure && !unified {
		return nil
	}
	t := &z.TLS
	switch {
	case z.Auth.SSLScheme != schemes.X509:
		return fmt.Errorf("ssl.authProvider is %q: a certificate is an identity of the scheme %s and no other here", z.Auth.SSLScheme, schemes.X509)
	case t.KeyStore.Location == "":
		return zoocfg.NotSet("ssl.keyStore.location", "a port with TLS needs a certificate")
	}
	if secure {
		c.SecureAddr = net.JoinHostPort(z.SecureClientPortAddress, strconv.Itoa(z.SecureClientPort))
	}
	c.PortUnification = unified
	c.TLS = &TLS{
		KeyStores: KeyStores{
			Key: storeOf(t.KeyStore), Trust: storeOf(t.TrustStore), ClientAuth: t.ClientAuth,
			Protocols: protocolsOf(t), CipherSuites: t.CipherSuites,
			VerifyClientHost: t.HostnameVerification && t.ClientHostnameVerification, ReverseDNS: t.AllowReverseDNSLookup, Reload: t.CertReload,
			CRL: t.CRL, OCSP: t.OCSP,
		},
		SuperUser: z.Auth.X509SuperUser,
	}
	return nil
}

func storeOf(s zoocfg.Store) keystore.Store {
	return keystore.Store{Location: s.Location, Password: s.Password, PasswordPath: s.PasswordPath, Type: s.Type}
}

// protocolsOf returns the TLS versions to offer. ssl.protocol limits them only if it
// names a version.
func protocolsOf(t *zoocfg.TLS) []string {
	if len(t.EnabledProtocols) == 0 && strings.HasPrefix(t.Protocol, "TLSv") {
		return []string{t.Protocol}
	}
	return t.EnabledProtocols
}

// quorumFromZooCfg translates sslQuorum, portUnification and ssl.quorum.*.
func (c *Config) quorumFromZooCfg(z *zoocfg.Config) error {
	if !z.SSLQuorum && !z.QuorumPortUnification {
		return nil
	}
	t := &z.QuorumTLS
	switch {
	case t.KeyStore.Location == "":
		return zoocfg.NotSet("ssl.quorum.keyStore.location", "sslQuorum and portUnification need a certificate")
	case t.TrustStore.Location == "":
		return zoocfg.NotSet("ssl.quorum.trustStore.location", "sslQuorum and portUnification need the certificates to trust")
	}
	c.Quorum.TLS = &QuorumTLS{
		KeyStores: KeyStores{
			Key: storeOf(t.KeyStore), Trust: storeOf(t.TrustStore), ClientAuth: t.ClientAuth,
			Protocols: protocolsOf(t), CipherSuites: t.CipherSuites,
			VerifyClientHost: t.HostnameVerification && t.ClientHostnameVerification,
			ReverseDNS:       t.AllowReverseDNSLookup, Reload: t.CertReload,
			CRL: t.CRL, OCSP: t.OCSP,
		},
		VerifyHost: t.HostnameVerification,
		DialPlain:  !z.SSLQuorum, AcceptPlain: z.QuorumPortUnification,
		DetectionTimeout: t.HandshakeDetectionTimeout,
	}
	return nil
}

// quorumSASLFromZooCfg translates quorum.auth.* and reads the JAAS file. As in
// ZooKeeper both sections must exist, whatever is required, and a standalone server
// reads neither.
func (c *Config) quorumSASLFromZooCfg(z *zoocfg.Config) error {
	q, file := &z.QuorumAuth, z.Auth.JAASFile
	if !q.EnableSASL || !z.Distributed() {
		return nil
	}
	if file == "" {
		return fmt.Errorf("quorum.auth.enableSasl: %w", zoocfg.NotSet("java.security.auth.login.config",
			"expected the JAAS file with the sections "+q.ServerContext+" and "+q.LearnerContext))
	}
	text, err := smallfile.Read(file)
	if err != nil {
		return fmt.Errorf("quorum.auth.enableSasl: java.security.auth.login.config: %w", err)
	}
	s := &QuorumSASL{LearnerRequire: q.LearnerRequire, ServerRequire: q.ServerRequire}
	if s.Users, err = jaas.Users(string(text), q.ServerContext); err != nil {
		return fmt.Errorf("quorum.auth.server.saslLoginContext: %s: %w", file, err)
	}
	if s.User, s.Password, err = jaas.Login(string(text), q.LearnerContext); err != nil {
		return fmt.Errorf("quorum.auth.learner.saslLoginContext: %s: %w", file, err)
	}
	c.Quorum.SASL = s
	return nil
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

// adminTLSFromZooCfg translates the TLS settings. As in ZooKeeper, the key store is
// that of the ports between servers.
func adminTLSFromZooCfg(z *zoocfg.Config) (*AdminTLS, error) {
	a, t := &z.Admin, &z.QuorumTLS
	if !a.ForceHTTPS && !a.PortUnification {
		if a.NeedClient {
			return nil, errors.New("admin.needClientAuth: a certificate can only be asked for with TLS: set admin.forceHttps too")
		}
		return nil, nil
	}
	if t.KeyStore.Location == "" {
		return nil, fmt.Errorf("admin.portUnification, admin.forceHttps: %w", zoocfg.NotSet("ssl.quorum.keyStore.location", "the AdminServer's certificate is there"))
	}
	auth := "none"
	if a.NeedClient {
		auth = "need"
	}
	return &AdminTLS{
		KeyStores: KeyStores{
			Key: storeOf(t.KeyStore), Trust: storeOf(t.TrustStore), ClientAuth: auth,
			Protocols: protocolsOf(t), CipherSuites: t.CipherSuites, Reload: t.CertReload,
			CRL: t.CRL, OCSP: t.OCSP,
		},
		Only: a.ForceHTTPS,
	}, nil
}
