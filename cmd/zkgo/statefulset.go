package main

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/offline/container"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/statefulset"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// podFlags contains the flags of a server that is a pod of a StatefulSet.
type podFlags struct {
	voters, domain, ports string
	password              string // file
	voterID, observerID   int
	patience              time.Duration
}

func (f *podFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.voters, "statefulset", "", "run as a pod of the StatefulSet with this `name`; a pod of another StatefulSet is an observer")
	flags.StringVar(&f.domain, "domain", "", "`domain` of the headless service of all servers, e.g. zk-headless.default.svc.cluster.local")
	flags.StringVar(&f.ports, "server-ports", "2888:3888;2181", "`ports` of each server, as in a server.N line")
	flags.StringVar(&f.password, "super-password-file", "", "`file` with the super user's password, for joining and leaving the ensemble")
	flags.IntVar(&f.voterID, "first-id", 1, "`id` of the first voter")
	flags.IntVar(&f.observerID, "first-observer-id", 101, "`id` of the first observer")
	flags.DurationVar(&f.patience, "leave-within", 45*time.Second, "how long a pod that is scaled down tries to leave the ensemble before it stops")
}

// pod is this server, as a pod of a StatefulSet.
type pod struct {
	member   statefulset.Member
	lines    []string // the list of servers
	patience time.Duration
}

// find returns the pod that the flags and the host name describe, or nil without
// --statefulset. It asks for the number of voters until the Kubernetes API answers.
func (f *podFlags) find(ctx context.Context, s *serverFlags, stderr io.Writer) (*pod, error) {
	if f.voters == "" {
		return nil, nil
	}
	if f.domain == "" || f.password == "" {
		return nil, usagef("--statefulset needs --domain and --super-password-file")
	}
	log, err := newLogger(stderr, s.logFormat, s.logLevel)
	if err != nil {
		return nil, err
	}
	_, port, ok := strings.Cut(f.ports, ";")
	if !ok {
		return nil, usagef("--server-ports %q: want quorumPort:electionPort;clientPort", f.ports)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	set, ordinal, err := statefulset.PodOf(host)
	if err != nil {
		return nil, err
	}
	api, err := statefulset.InCluster(os.Getenv)
	if err != nil {
		return nil, err
	}
	credentials, err := superCredentials(f.password)
	if err != nil {
		return nil, err
	}
	p := &pod{patience: f.patience, member: statefulset.Member{
		Pod:   statefulset.Pod{Set: set, Ordinal: ordinal, Voters: f.voters, Domain: f.domain, Ports: f.ports, VoterID: f.voterID, OwnID: f.voterID},
		Sizes: api.Size, Port: port, Log: log,
	}}
	own := []client.Option{client.WithAuth("digest", []byte(credentials)), client.WithoutShuffle()}
	p.member.Connect = func() ([]client.Option, error) { return own, nil }
	if p.member.Observer() {
		p.member.OwnID = f.observerID
	}
	size, err := p.member.Voters(ctx)
	if err != nil {
		return nil, err
	}
	p.lines = p.member.Lines(size)
	// A list that grows with the ensemble needs the last one of these, see docs/operate/kubernetes.md.
	s.set = append(s.set, "DigestAuthenticationProvider.superDigest="+digestOf(credentials),
		"reconfigEnabled=true", "standaloneEnabled=false", "formationNeedsAll=true")
	return p, nil
}

// superCredentials returns super:password with the password in a file.
func superCredentials(path string) (string, error) {
	text, err := smallfile.Read(path)
	if err != nil {
		return "", usagef("--super-password-file: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", usagef("--super-password-file %s: it is empty", path)
	}
	return "super:" + password, nil
}

// digestOf returns the superDigest for credentials.
func digestOf(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials)) //nolint:gosec // ZooKeeper's scheme
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// variables returns the variables that the pod determines.
func (p *pod) variables() []string {
	return []string{"ZOO_MY_ID=" + strconv.Itoa(p.member.ID()), "ZOO_SERVERS=" + strings.Join(p.lines, " ")}
}

// forget removes the zoo.cfg of an earlier start in the same pod. The list in it may be older
// than the StatefulSet's size, and a pod that was moved to another machine has none either.
func (p *pod) forget(plan container.Plan) error {
	if plan.Config == "" {
		return nil // the user named the file
	}
	if err := os.Remove(plan.ConfigPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// run runs the server. Concurrently, it joins the ensemble, and leaves it when the server is scaled
// away.
func (p *pod) run(ctx context.Context, s *serverFlags, stderr io.Writer, log *slog.Logger) error {
	z, err := s.zooCfg()
	if err != nil {
		return err
	}
	if err := p.encrypt(z); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	attending, leaveOff := context.WithCancel(ctx)
	defer leaveOff()
	var wg sync.WaitGroup
	wg.Go(func() { p.attend(attending) })
	wg.Go(func() {
		defer stop()
		select {
		case <-ctx.Done():
		case <-serving.Done():
			return
		}
		leaving, cancel := context.WithTimeout(serving, p.patience)
		defer cancel()
		if err := p.member.Leave(leaving); err != nil && serving.Err() == nil {
			log.Error("this server stops but is still a member of the ensemble", "reason", err)
		}
	})
	err = runServer(serving, s, stderr, nil)
	stop() // also if the server has failed
	leaveOff()
	wg.Wait()
	return err
}

// attend joins the ensemble, and then removes lost members from it, until ctx ends.
func (p *pod) attend(ctx context.Context) {
	if p.member.Join(ctx) != nil {
		return // ctx has ended
	}
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := p.member.Sweep(ctx); err != nil && ctx.Err() == nil {
				p.member.Log.Debug("could not look for lost members", "reason", err)
			}
		}
	}
}

// encrypt makes the pod connect to the other servers' TLS port if this server has one, so that
// the password isn't sent in plaintext. It reads the certificates for each connection: a pod
// outlives cert-manager's certificates.
func (p *pod) encrypt(z *zoocfg.Config) error {
	if z.SecureClientPort == zoocfg.Unset {
		return nil
	}
	own := p.member.Connect
	p.member.Port = strconv.Itoa(z.SecureClientPort)
	p.member.Connect = func() ([]client.Option, error) {
		config, err := clientTLS(z)
		if err != nil {
			return nil, fmt.Errorf("TLS certificates for joining the ensemble: %w", err)
		}
		options, err := own()
		return append(slices.Clone(options), client.WithTLS(config)), err
	}
	_, err := p.member.Connect() // a mistake should stop the start
	return err
}

// clientTLS returns the TLS configuration of a client that has the certificate of a server's client
// port, and trusts the same authorities.
func clientTLS(z *zoocfg.Config) (*tls.Config, error) {
	own, trust := z.TLS.KeyStore, z.TLS.TrustStore
	pool, err := keystore.Store{Location: trust.Location, Password: trust.Password, PasswordPath: trust.PasswordPath, Type: trust.Type}.Pool()
	if err != nil {
		return nil, err
	}
	cert, err := keystore.Store{Location: own.Location, Password: own.Password, PasswordPath: own.PasswordPath, Type: own.Type}.Certificate()
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{cert}}, err
}
