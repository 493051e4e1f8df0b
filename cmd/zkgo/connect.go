package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// connectFlags contains the flags of every command that connects to servers.
type connectFlags struct {
	server, context string
	from            []string // AdminServers
	timeout         time.Duration
	sessionTimeout  time.Duration
	readOnly        bool
	properties      string
	auth            []string
	sasl            string

	tls, insecure             bool
	ca, cert, key, passwordOf string
	serverName                string
	noHostname                bool
	trust, own                keystore.Store // from -client-configuration
	maxReply                  int

	zkCli          bool     // accept zkCli.sh's short flags, too
	withoutCommand bool     // don't run the context's auth-command
	registered     []string // the names of the command's flags
	settings       settings // after resolve
}

// declare returns all flags of connections, so that a flag is the same for every command
// that has it.
func (f *connectFlags) declare() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.StringVarP(&f.server, "server", "s", "localhost:2181", "`servers` and chroot: host:port,host:port/chroot")
	flags.StringArrayVar(&f.from, "from", nil, "`URL` of an AdminServer, e.g. http://host:8080; may be repeated: the first one that answers is used")
	flags.StringVar(&f.context, "context", "", "`name` of the context with connection settings, see zkgo context")
	durationVar(flags, &f.timeout, "timeout", 10*time.Second, false, "how long to wait for a server")
	durationVar(flags, &f.sessionTimeout, "session-timeout", client.DefaultSessionTimeout, true, "session timeout to request, a duration or milliseconds")
	flags.BoolVar(&f.readOnly, "readonly", false, "also connect to a read-only server, which has lost its quorum")
	flags.StringVar(&f.properties, "client-configuration", "", "properties `file` of ZooKeeper's Java client (zookeeper.ssl.*, jute.maxbuffer)")
	flags.StringArrayVar(&f.auth, "auth", nil, "credentials as `scheme:credentials`, or @FILE to read them from a file; may be repeated")
	flags.StringVar(&f.sasl, "sasl", "", "`user:password` for SASL DIGEST-MD5, or @FILE to read it from a file")
	flags.BoolVar(&f.tls, "tls", false, "connect with TLS; implied by the other --tls flags")
	flags.StringVar(&f.ca, "tls-ca", "", "`file` with trusted CA certificates, in PEM, PKCS12 or JKS format (default: the system's)")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the client certificate and key, in PEM (see --tls-key), PKCS12 or JKS format")
	flags.StringVar(&f.key, "tls-key", "", "PEM `file` with the private key of --tls-cert")
	flags.StringVar(&f.passwordOf, "tls-password-file", "", "`file` with the password of --tls-ca and --tls-cert")
	flags.StringVar(&f.serverName, "tls-server-name", "", "expected `name` in the server's certificate, instead of the host name")
	flags.BoolVar(&f.insecure, "tls-insecure", false, "do not verify the server's certificate (for tests only)")
	flags.VisitAll(func(flag *pflag.Flag) { flag.Usage += " [" + variable(key(flag.Name)) + "]" })
	return flags
}

// register adds the flags with these names.
func (f *connectFlags) register(flags *pflag.FlagSet, names []string) {
	all := f.declare()
	for _, name := range names {
		flag := all.Lookup(name)
		if name == "readonly" && f.zkCli {
			flag.Shorthand = "r"
		}
		flags.AddFlag(flag)
	}
	f.registered = names
}

// durationFlag is the value of a flag: a duration above 0.
type durationFlag struct {
	value  *time.Duration
	millis bool // a number is a duration in milliseconds
}

// durationVar registers a flag for a duration.
func durationVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, millis bool, usage string) {
	*p = value
	flags.Var(durationFlag{p, millis}, name, usage)
}

// String implements pflag.Value.
func (d durationFlag) String() string {
	if d.value == nil {
		return "0s"
	}
	return d.value.String()
}

// Type implements pflag.Value.
func (d durationFlag) Type() string { return "duration" }

// Set implements pflag.Value.
func (d durationFlag) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil && d.millis {
		v, err = time.ParseDuration(text + "ms")
	}
	if err != nil || v <= 0 {
		return errors.New("want a duration above 0, e.g. 30s or 2m")
	}
	*d.value = v
	return nil
}

// options converts the flags to client options.
func (f *connectFlags) options() ([]client.Option, error) {
	if f.properties != "" {
		if err := f.readProperties(); err != nil {
			return nil, err
		}
	}
	var options []client.Option
	if f.readOnly {
		options = append(options, client.WithReadOnly())
	}
	if f.maxReply > 0 {
		options = append(options, client.WithMaxReply(f.maxReply), client.WithMaxRequest(f.maxReply))
	}
	for _, text := range f.auth {
		scheme, credentials, err := credentials("--auth", text)
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithAuth(scheme, []byte(credentials)))
	}
	if f.sasl != "" {
		user, password, err := credentials("--sasl", f.sasl)
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithSASL(client.DigestMD5(user, password)))
	}
	config, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	if config != nil {
		options = append(options, client.WithTLS(config))
	}
	return options, nil
}

// credentials splits "name:secret". The text may be in a file, to keep it out of the
// process list. We never put the secret into an error.
func credentials(flag, text string) (name, secret string, err error) {
	if text, err = secretText(flag, text); err != nil {
		return "", "", err
	}
	name, secret, ok := strings.Cut(text, ":")
	if !ok || name == "" {
		return "", "", usagef("%s: want two words separated by a colon", flag)
	}
	return name, secret, nil
}

// tlsConfig returns nil if no flag requests TLS.
func (f *connectFlags) tlsConfig() (*tls.Config, error) {
	if f.ca != "" {
		f.trust = keystore.Store{Location: f.ca, PasswordPath: f.passwordOf}.Sniff()
	}
	if f.cert != "" {
		f.own = keystore.Store{Location: f.cert, PasswordPath: f.passwordOf}.Sniff()
	}
	if !f.tls && f.trust.Location == "" && f.own.Location == "" && f.key == "" && f.serverName == "" && !f.insecure {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName, InsecureSkipVerify: f.insecure}
	if f.trust.Location != "" {
		pool, err := f.trust.Pool()
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	switch {
	case f.key != "" && f.cert == "":
		return nil, usagef("--tls-key without --tls-cert")
	case f.key != "":
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, usagef("--tls-cert %s, --tls-key %s: %w", f.cert, f.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	case f.own.Location != "":
		pair, err := f.own.Certificate()
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if f.noHostname && !f.insecure {
		verifyChainOnly(config)
	}
	return config, nil
}

// verifyChainOnly verifies a certificate's chain, but not its host name.
func verifyChainOnly(config *tls.Config) {
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: config.RootCAs, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(options)
		return err
	}
}

// readProperties reads the supported settings from a properties file of ZooKeeper's
// Java client.
func (f *connectFlags) readProperties() error {
	text, err := smallfile.Read(f.properties)
	if err != nil {
		return fmt.Errorf("-client-configuration: %w", err)
	}
	values, err := zoocfg.Properties(string(text))
	if err != nil {
		return fmt.Errorf("-client-configuration %s: %w", f.properties, err)
	}
	get := func(key string) string { return strings.TrimSpace(values["zookeeper."+key]) }
	store := func(name string) keystore.Store {
		return keystore.Store{
			Location: get(name + ".location"), Password: get(name + ".password"),
			PasswordPath: get(name + ".passwordPath"), Type: get(name + ".type"),
		}
	}
	if secure := get("client.secure"); strings.EqualFold(secure, "true") {
		f.tls = true
		f.own, f.trust = store("ssl.keyStore"), store("ssl.trustStore")
		f.noHostname = strings.EqualFold(get("ssl.hostnameVerification"), "false")
	}
	if size := strings.TrimSpace(values["jute.maxbuffer"]); size != "" {
		if f.maxReply, err = parseInt(size); err != nil {
			return fmt.Errorf("-client-configuration %s: jute.maxbuffer=%s is not a number of bytes", f.properties, size)
		}
	}
	return nil
}

// parseInt parses a positive number, decimal or hexadecimal, with Java's rules.
func parseInt(text string) (int, error) {
	n, err := strconv.ParseInt(text, 0, 32)
	if err == nil && n <= 0 {
		err = strconv.ErrRange
	}
	return int(n), err
}
