package takeover

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/tree"
)

// Options are an operator's settings of a mirror.
type Options struct {
	From, Clients string // the ensemble, for mirror.Describe; empty: as at the last start
	DataDir       string // of the server
	ObserverID    int64  // our number in the ensemble
	Serve         bool   // clients are served before the cutover
	ReadsOnly     bool   // only clients that accept read-only sessions are
	// User and Password authenticate us with SASL DIGEST-MD5, and TLS is the configuration
	// for connections to the ensemble's leader; none and nil: neither.
	User, Password string
	TLS            *tls.Config
	// MinTimeout is the shortest session timeout that we negotiate with clients.
	MinTimeout time.Duration
	MaxField   int // the longest field in bytes that we read
	MaxRequest int // jute.maxbuffer
	Policy     tree.Policy
	Progress   func(*Arrival) // as in Config; nil: logged
	Logger     *slog.Logger
}

// silence returns how long the ensemble's leader may be silent; 0: the default. While we serve
// clients, we tell the ensemble's leader at each of its pings which sessions are alive. If it is
// silent, we have to notice that and disconnect the clients before it can end a session: otherwise
// a client could rely on a lock that another client has acquired there.
func silence(serve bool, minTimeout time.Duration) time.Duration {
	if !serve {
		return 0
	}
	return minTimeout * 2 / 3
}

// advice names the flags of zkgo mirror that help against an error of learner.Dial; "" if none
// does.
func advice(err error, c *learner.Config) string {
	switch {
	case errors.Is(err, learner.ErrCertificate):
		return "--tls-ca must name the authority of the ensemble's certificates, and they must have the host names of --from (or see --tls-server-name)"
	case errors.Is(err, learner.ErrOurCertificate):
		return "--tls-cert must name a certificate that the ensemble's servers accept from each other"
	case errors.Is(err, learner.ErrNoTLS):
		return "if the ensemble does not set sslQuorum, leave out the --tls flags"
	case errors.Is(err, learner.ErrLogin):
		return "--sasl must name a user of the ensemble's JAAS file, and the password"
	case errors.Is(err, learner.ErrNoLogin) && c.TLS == nil:
		return "leave out --sasl, or add --tls-cert and --tls-ca"
	case errors.Is(err, learner.ErrNoLogin):
		return "leave out --sasl"
	case !errors.Is(err, learner.ErrTurnedAway):
		return ""
	case c.User != "": // the login was accepted
		return ""
	case c.TLS != nil:
		return "--sasl may be missing, or --tls-cert wrong"
	}
	return "--sasl may be missing, or --tls-cert and --tls-ca"
}

// Configure returns the Mirror that o describes.
func Configure(o Options) (*Mirror, error) {
	memory, err := recall(o.DataDir, o.From, o.Clients)
	if err != nil {
		return nil, err
	}
	old, err := mirror.Describe(memory.From, memory.Clients)
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
			SilenceTimeout: silence(o.Serve, o.MinTimeout),
			Addrs:          old.QuorumAddrs(), ID: o.ObserverID, TLS: o.TLS, User: o.User, Password: o.Password, MaxRequest: o.MaxRequest,
			Policy: o.Policy & tree.Emulate353TTL, Limits: zkfiles.Limits{MaxField: o.MaxField},
		},
		Old: old, Memory: memory, Serve: o.Serve, ReadsOnly: o.ReadsOnly, Progress: o.Progress, Logger: o.Logger,
	}), nil
}
