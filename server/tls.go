package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// KeyStores are the key store and the trust store of a port, and what the port asks of
// the other side.
type KeyStores = keystore.Options

// TLS configures TLS for clients.
type TLS struct {
	KeyStores
	// Config, if set, replaces KeyStores except for VerifyClientHost.
	Config *tls.Config
	// SuperUser is the subject, in the form of [keystore.Subject], of the certificate
	// whose owner has every permission.
	SuperUser string
}

// newTLSPort reads the key stores.
func newTLSPort(t *TLS, log *slog.Logger) (*tlsport.Port, error) {
	config := t.Config
	if config == nil {
		var err error
		config, err = keystore.ServerConfig(t.KeyStores, func(err error) { log.Error("TLS goes on with what it has", "error", err) })
		if err != nil {
			return nil, fmt.Errorf("TLS for clients: %w", err)
		}
	}
	return tlsport.New(config, t.KeyStores, t.SuperUser), nil
}

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
