package takeover

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/tree"
)

// Options are what an operator says about a mirror.
type Options struct {
	From, Clients string // the ensemble, for mirror.Describe
	ObserverID    int64  // our number in the ensemble
	Serve         bool   // clients are served before the cutover
	ReadsOnly     bool   // only clients that accept read-only sessions are
	// User and Password authenticate us with SASL DIGEST-MD5, and TLS is the configuration
	// for connections to the ensemble's leader; none and nil: neither.
	User, Password string
	TLS            *tls.Config
	MaxField       int // the longest field in bytes that we read
	MaxRequest     int // jute.maxbuffer
	Policy         tree.Policy
	Logger         *slog.Logger
}

// Configure returns the Mirror that o describes.
func Configure(o Options) (*Mirror, error) {
	old, err := mirror.Describe(o.From, o.Clients)
	if err != nil {
		return nil, err
	}
	if section, is := old.QuorumSASL(); is && o.User == "" {
		return nil, fmt.Errorf("the ensemble's servers authenticate each other: name a user of their JAAS file (section %s) with --sasl", section)
	}
	if old.QuorumTLS() && o.TLS == nil {
		return nil, fmt.Errorf("the ensemble's servers use TLS between each other: name a certificate that they trust with --tls-cert, and theirs with --tls-ca")
	}
	return New(Config{
		Learner: learner.Config{
			Addrs: old.QuorumAddrs(), ID: o.ObserverID, TLS: o.TLS, User: o.User, Password: o.Password, MaxRequest: o.MaxRequest,
			Policy: o.Policy & tree.Emulate353TTL, Limits: zkfiles.Limits{MaxField: o.MaxField},
		},
		Old: old, Serve: o.Serve, ReadsOnly: o.ReadsOnly, Logger: o.Logger,
	}), nil
}
