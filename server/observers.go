package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/observermaster"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// observers serves those that follow this server's state from outside of its ensemble: standbys,
// and ensembles that take over. Without a port for them nothing is kept for them.
type observers struct {
	history *observermaster.History // nil: there is no port
	master  *observermaster.Master
}

// defaultObserverBytes is the default of Quorum.ObserverMasterBytes.
const defaultObserverBytes = 64 << 20

// errNoBody reports a port for observers in a program without the format of what they get.
var errNoBody = errors.New("observerMasterPort: this program has no format for the state (Env.Formats)")

// prepare makes the Node of the configuration keep transactions, if there is a port.
func (o *observers) prepare(c *Config, node *raftfsm.Config) error {
	switch {
	case c.Quorum.ObserverMasterAddr == "":
		return nil
	case c.Env.Formats.WriteBody == nil:
		return errNoBody
	}
	size := c.Quorum.ObserverMasterBytes
	or(&size, defaultObserverBytes)
	o.history = observermaster.NewHistory(size)
	node.Stream = o.history
	return nil
}

// open opens the port, if it is configured. security is for the connections between servers.
func (o *observers) open(ctx context.Context, s *Server, security *raftfsm.TLS) error {
	c := &s.cfg
	if o.history == nil {
		return nil
	}
	at := listen.At(observersSetting, c.Quorum.ObserverMasterAddr)
	l, err := c.bindRetry().AwaitName(ctx, at, listen.TCP)
	if err != nil {
		return listenError(at, err)
	}
	config := observermaster.Config{
		Tree: s.tree, Sessions: s.node.Sessions(), History: o.history,
		WriteBody: c.Env.Formats.WriteBody, Sync: func(done func(error)) error { return syncFor(s, done) },
		Tick: c.TickTime, InitLimit: c.Quorum.InitLimit, SyncLimit: c.Quorum.SyncLimit, Logger: s.log,
	}
	if security != nil {
		config.TLS, config.AcceptPlain = security.Config, security.AcceptPlain
	}
	if q := c.Quorum.SASL; q != nil {
		config.Users, config.RequireLogin = q.Users, q.ServerRequire
	}
	if !config.RequireLogin && (config.AcceptPlain || !demandsCertificate(config.TLS)) {
		s.log.Warn("every program that reaches the port for observers gets all znodes and the passwords of all sessions: protect it (docs/operate/security.md)",
			"address", l.Addr().String())
	}
	o.master = observermaster.New(config, l)
	s.spawn(o.master.Serve)
	s.log.Info("serving observers", "address", l.Addr().String())
	return nil
}

// observersSetting is the key that names the port.
const observersSetting = "observerMasterPort"

// demandsCertificate reports whether TLS turns away observers without a certificate.
func demandsCertificate(config func() *tls.Config) bool {
	return config != nil && config().ClientAuth >= tls.RequireAndVerifyClientCert
}

// syncFor proposes a sync, and calls done once it is applied here.
func syncFor(s *Server, done func(error)) error {
	return s.node.Propose(&raftfsm.Command{Kind: raftfsm.KindSync, Waiter: s.Waiter(func(a *raftfsm.Applied) {
		if a.Code != proto.Ok {
			done(fmt.Errorf("a sync has failed: %v", a.Code))
			return
		}
		done(nil)
	})})
}

// close closes the port and the connections.
func (o *observers) close() error {
	if o.master == nil {
		return nil
	}
	return o.master.Close()
}

// quorumTLS returns the TLS of the connections between servers, which observers use too; nil if
// it isn't configured or not used.
func (c *Config) quorumTLS() (*raftfsm.TLS, error) {
	q := &c.Quorum
	if q.TLS == nil || !c.distributed() && q.ObserverMasterAddr == "" {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	return q.TLS.load(c.Env.Formats, c.Logger)
}
