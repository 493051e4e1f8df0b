package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// AdminTLS configures TLS on the port for commands over HTTP.
type AdminTLS struct {
	KeyStores
	// Config, if set, replaces KeyStores.
	Config *tls.Config
	// Only refuses plaintext; otherwise the port accepts both.
	Only bool
}

// load reads the key stores.
func (t *AdminTLS) load(log *slog.Logger) (*tls.Config, error) {
	if t.Config != nil {
		return t.Config, nil
	}
	c, err := keystore.ServerConfig(t.KeyStores, func(err error) { log.Error("TLS of the AdminServer goes on with what it has", "error", err) })
	if err != nil {
		return nil, fmt.Errorf("TLS of the AdminServer, ssl.quorum.*: %w", err)
	}
	return c, nil
}

// wrap returns l with the TLS that t configures; t may be nil.
func (t *AdminTLS) wrap(l net.Listener, log *slog.Logger) (net.Listener, error) {
	if t == nil {
		return l, nil
	}
	config, err := t.load(log)
	switch {
	case err != nil:
		return nil, err
	case t.Only:
		return tls.NewListener(l, config), nil
	}
	return tlsport.Either(l, config, httpport.HeaderTimeout), nil
}

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
