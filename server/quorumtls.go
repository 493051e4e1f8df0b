package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/server/keystore"
	"github.com/zkgo/zkgo/server/zoocfg"
)

// QuorumTLS says how the servers of an ensemble speak TLS with one another.
type QuorumTLS struct {
	// Options name the key and whom to trust. VerifyClientHost lets only those
	// servers in whose certificate names a host that they are known at, or the
	// one that they call from.
	keystore.Options
	// Config is used instead of what Options name, except for VerifyClientHost
	// and ReverseDNS. Its ClientCAs are trusted in either direction.
	Config *tls.Config
	// VerifyHost: the certificate of a server that is called has to name the
	// host that the configuration gives for it.
	VerifyHost bool
	// DialPlain calls the others in plaintext, and AcceptPlain takes plaintext
	// as well: for changing an ensemble to TLS, or back, while it runs.
	DialPlain, AcceptPlain bool
	// DetectionTimeout is how long a connection may say nothing; default 5 s.
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
	t.Config, err = keystore.PeerConfig(q.Options, func(err error) { log.Error("TLS between the servers goes on with what it has", "error", err) })
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
		return errors.New("ssl.quorum.keyStore.location is not set: sslQuorum and portUnification need a certificate")
	case t.TrustStore.Location == "":
		return errors.New("ssl.quorum.trustStore.location is not set: sslQuorum and portUnification need to know whom to trust")
	}
	c.QuorumTLS = &QuorumTLS{
		Options: keystore.Options{
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
