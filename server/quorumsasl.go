package server

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/auth/jaas"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// QuorumSASL lets the servers of an ensemble prove to one another, with SASL
// DIGEST-MD5, that they know a password. It doesn't protect the traffic that follows:
// that needs QuorumTLS, and the two work together.
type QuorumSASL struct {
	// Users may connect to this server. User is the name it uses to connect to others.
	Users          map[string]string // passwords by user
	User, Password string
	// LearnerRequire makes this server authenticate to the servers it dials
	// (quorum.auth.learnerRequireSasl). ServerRequire rejects servers that don't
	// authenticate (quorum.auth.serverRequireSasl), and requires LearnerRequire.
	// Without ServerRequire the server accepts both kinds, so that a running ensemble
	// can change over.
	LearnerRequire, ServerRequire bool
}

// check reports settings that would keep servers apart.
func (q *QuorumSASL) check() error {
	switch {
	case q == nil:
	case len(q.Users) == 0:
		return errors.New("QuorumSASL: nobody is in Users")
	case q.User == "" || q.Password == "":
		return errors.New("QuorumSASL: User and Password are not both set")
	case q.ServerRequire && !q.LearnerRequire:
		return errors.New("QuorumSASL: ServerRequire takes LearnerRequire: this server could not call the others")
	}
	return nil
}

// of returns the SASL settings of the connections between the servers.
func (q *QuorumSASL) of() *quorum.SASL {
	if q == nil {
		return nil
	}
	return &quorum.SASL{Users: q.Users, User: q.User, Password: q.Password, Login: q.LearnerRequire, Require: q.ServerRequire}
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
