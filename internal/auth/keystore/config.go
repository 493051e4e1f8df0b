package keystore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/auth/certs"
)

// Options are the ssl.* settings of one port.
type Options struct {
	Key   Store
	Trust Store

	ClientAuth   string   // none, want or need; empty: need
	Protocols    []string // TLSv1.2, TLSv1.3; we drop older ones; empty: both
	CipherSuites []string // Go or Java names, we drop unusable ones; empty: Go's choice
	Reload       bool     // reload the files when they change
	CRL, OCSP    bool     // check for revocation at the addresses in the certificate
}

// ServerConfig returns the TLS configuration of a listener. With Reload, it passes
// the error of a failed reload to warn and keeps using the last good configuration.
func ServerConfig(o Options, warn func(error)) (*tls.Config, error) {
	stamp := o.stamp() // before reading: if a file changes in the meantime, we read it again
	if err := o.dropUnusable(warn); err != nil {
		return nil, err
	}
	load := o.checking(o.watched(o.load, warn))
	base, err := load()
	if err != nil {
		return nil, err
	}
	if !o.Reload {
		return base, nil
	}
	r := &reloader{options: o, load: load, current: base, stamp: stamp, warn: warn}
	outer := base.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.config(), nil }
	return outer, nil
}

// PeerConfig returns a function that returns the TLS configuration of the next connection
// between two servers, in either role; the trusted certificates are in ClientCAs. With
// Reload, the function reads changed files, like ServerConfig.
func PeerConfig(o Options, warn func(error)) (func() *tls.Config, error) {
	if o.Trust.Location == "" {
		return nil, errors.New("trustStore.location is not set: no certificate is trusted")
	}
	if err := o.dropUnusable(warn); err != nil {
		return nil, err
	}
	load := o.checking(o.watched(func() (*tls.Config, error) {
		c, err := o.load()
		if err == nil && c.ClientCAs == nil {
			c.ClientCAs, err = o.Trust.Pool()
		}
		return c, err
	}, warn))
	stamp := o.stamp()
	base, err := load()
	if err != nil {
		return nil, err
	}
	if !o.Reload {
		return func() *tls.Config { return base }, nil
	}
	return (&reloader{options: o, load: load, current: base, stamp: stamp, warn: warn}).config, nil
}

// watched returns a load that warns if the server's own certificate has expired or isn't
// valid yet. Peers reject such a certificate without saying why.
func (o Options) watched(load func() (*tls.Config, error), warn func(error)) func() (*tls.Config, error) {
	return func() (*tls.Config, error) {
		c, err := load()
		if err != nil || warn == nil {
			return c, err
		}
		if why := certs.Outdated(c.Certificates[0].Leaf, time.Now()); why != "" {
			warn(fmt.Errorf("key store %s: %s %s", o.Key.Location, certs.Describe(c.Certificates[0].Leaf), why))
		}
		return c, nil
	}
}

// load reads the files and builds a configuration.
func (o Options) load() (*tls.Config, error) {
	cert, err := o.Key.Certificate()
	if err != nil {
		return nil, err
	}
	// We disable tickets: if a client resumed a session, we would not check it against a
	// trust store that has changed since.
	c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true}
	o.versions(c)
	for _, name := range o.CipherSuites {
		id, _ := suite(name)
		c.CipherSuites = append(c.CipherSuites, id)
	}
	if err := o.clients(c); err != nil {
		return nil, err
	}
	return c, nil
}

// clients sets the verification of clients.
func (o Options) clients(c *tls.Config) error {
	switch strings.ToLower(o.ClientAuth) {
	case "none":
		return nil
	case "want":
		c.ClientAuth = tls.VerifyClientCertIfGiven
	case "need", "":
		c.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		return fmt.Errorf("ssl.clientAuth is %q, not none, want or need", o.ClientAuth)
	}
	if o.Trust.Location == "" {
		return errors.New("ssl.trustStore.location is not set: clients' certificates cannot be verified; set it, e.g. as -Dzookeeper.ssl.trustStore.location in SERVER_JVMFLAGS, or set ssl.clientAuth=none")
	}
	pool, err := o.Trust.Pool()
	c.ClientCAs = pool
	return err
}

var (
	offered = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}
	tooOld  = []string{"SSLv2Hello", "SSLv2", "SSLv3", "TLSv1", "TLSv1.1"}
)

// dropUnusable drops the TLS versions that are too old and the cipher suites that Go
// doesn't offer, and warns about each, so that a list written for Java works. It returns an
// error if a list ends up empty or if a version is unknown.
func (o *Options) dropUnusable(warn func(error)) error {
	var errs []error
	var versions, suites []string
	for _, name := range o.Protocols {
		name = strings.TrimSpace(name)
		switch {
		case offered[name] != 0:
			versions = append(versions, name)
		case slices.Contains(tooOld, name):
			errs = append(errs, fmt.Errorf("%q of ssl.enabledProtocols or ssl.protocol is too old and is not offered: TLSv1.2 and TLSv1.3 are", name))
		default:
			return fmt.Errorf("%q of ssl.enabledProtocols or ssl.protocol is neither TLSv1.2 nor TLSv1.3", name)
		}
	}
	if len(o.Protocols) > 0 && len(versions) == 0 {
		return errors.Join(errs...)
	}
	old := len(errs)
	for _, name := range o.CipherSuites {
		name = strings.TrimSpace(name)
		if _, ok := suite(name); ok {
			suites = append(suites, name)
		} else {
			errs = append(errs, fmt.Errorf("%q of ssl.ciphersuites is unknown or not safe enough, and is not offered", name))
		}
	}
	if len(o.CipherSuites) > 0 && len(suites) == 0 {
		return errors.Join(errs[old:]...)
	}
	o.Protocols, o.CipherSuites = versions, suites
	if warn != nil {
		for _, err := range errs {
			warn(err)
		}
	}
	return nil
}

// versions sets the range of TLS versions.
func (o Options) versions(c *tls.Config) {
	if len(o.Protocols) == 0 {
		return
	}
	c.MinVersion, c.MaxVersion = tls.VersionTLS13, 0
	for _, p := range o.Protocols {
		c.MinVersion = min(c.MinVersion, offered[p])
		c.MaxVersion = max(c.MaxVersion, offered[p])
	}
}

// suite returns a cipher suite by name. Go doesn't let us choose the TLS 1.3 suites, so we
// accept and ignore their names.
func suite(name string) (uint16, bool) {
	for _, s := range tls.CipherSuites() {
		// Java's names of the two ChaCha suites also end in _SHA256.
		if s.Name == name {
			return s.ID, true
		}
	}
	return 0, false
}

// reloader keeps the newest valid configuration while the files of its Options change.
type reloader struct {
	options Options
	load    func() (*tls.Config, error)
	warn    func(error)

	mu      sync.Mutex
	current *tls.Config
	stamp   [4]fileStamp
}

// fileStamp identifies a version of a file.
type fileStamp struct {
	size  int64
	mtime time.Time
}

// stamp stats the files without reading them.
func (o Options) stamp() (s [4]fileStamp) {
	for i, name := range []string{o.Key.Location, o.Key.PasswordPath, o.Trust.Location, o.Trust.PasswordPath} {
		if info, err := os.Stat(name); err == nil {
			s[i] = fileStamp{info.Size(), info.ModTime()}
		}
	}
	return s
}

// config returns the configuration for the next handshake.
func (r *reloader) config() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.options.stamp()
	if now == r.stamp {
		return r.current
	}
	r.stamp = now
	fresh, err := r.load()
	if err != nil {
		r.warn(fmt.Errorf("certificates not reloaded: %w", err))
		return r.current
	}
	r.current = fresh
	return r.current
}
