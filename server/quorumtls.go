package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// QuorumTLS configures TLS between the servers of an ensemble.
type QuorumTLS struct {
	// KeyStores name the key and the trusted certificates. With VerifyClientHost a server
	// accepts only a peer whose certificate names a host that the configuration has for
	// the peer, or the host it connects from.
	KeyStores
	// Config, if set, replaces KeyStores except for VerifyClientHost and ReverseDNS. Its
	// ClientCAs are trusted in both directions.
	Config *tls.Config
	// VerifyHost requires that the certificate of a dialed server names the host that
	// the configuration has for it.
	VerifyHost bool
	// DialPlain dials the other servers in plaintext, and AcceptPlain also accepts
	// plaintext: for changing a running ensemble to TLS, or back.
	DialPlain, AcceptPlain bool
	// DetectionTimeout is how long a new connection may stay silent; default 5 s.
	DetectionTimeout time.Duration
}

// load reads the key stores.
func (q *QuorumTLS) load(log *slog.Logger) (*quorum.TLS, error) {
	t := &quorum.TLS{
		DialPlain: q.DialPlain, AcceptPlain: q.AcceptPlain,
		VerifyHost: q.VerifyHost, VerifyCaller: q.VerifyClientHost, ReverseDNS: q.ReverseDNS,
		Detect: q.DetectionTimeout,
	}
	if q.Config != nil {
		t.Config = func() *tls.Config { return q.Config }
		return t, nil
	}
	var err error
	t.Config, err = keystore.PeerConfig(q.KeyStores, func(err error) { log.Error("TLS between the servers goes on with what it has", "error", err) })
	if err != nil {
		return nil, fmt.Errorf("TLS between servers, ssl.quorum.*: %w", err)
	}
	return t, nil
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
