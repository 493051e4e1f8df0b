package server

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/offline/backup"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// allFormats is formats.All, which imports this package.
func allFormats() Formats {
	options := func(k KeyStores) keystore.Options {
		return keystore.Options{
			Key: keystore.Store(k.Key), Trust: keystore.Store(k.Trust), ClientAuth: k.ClientAuth, Protocols: k.Protocols, CipherSuites: k.CipherSuites,
			Reload: k.Reload, CRL: k.CRL, OCSP: k.OCSP,
		}
	}
	return Formats{
		ServerTLS: func(k KeyStores, warn func(error)) (*tls.Config, error) {
			return keystore.ServerConfig(options(k), warn)
		},
		PeerTLS: func(k KeyStores, warn func(error)) (func() *tls.Config, error) {
			return keystore.PeerConfig(options(k), warn)
		},
		WriteState: func(w io.Writer, snap *tree.Snapshot, sessions *session.Table) error {
			return zkfiles.WriteSnapshot(w, snap, sessions, zkfiles.None)
		},
		WriteBody: zkfiles.WriteBody,
		ReadState: backup.ReadState,
	}
}

// TestWithoutFormats: the error for a missing format names the field that the program has to
// set, when the server starts or when a client needs the format.
func TestWithoutFormats(t *testing.T) {
	t.Parallel()
	files := KeyStores{Key: KeyStore{Location: "key.pem"}, Trust: KeyStore{Location: "trust.pem"}}
	for _, tt := range []struct {
		name, says string
		change     func(*Config)
	}{
		{"key stores for clients", "Config.Env.Formats", func(c *Config) { c.SecureAddr, c.TLS = "127.0.0.1:0", &TLS{KeyStores: files} }},
		{"key stores for operators", "Config.Env.Formats", func(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0", TLS: &AdminTLS{KeyStores: files}} }},
		{"key stores between servers", "Config.Env.Formats", func(c *Config) {
			c.Quorum.Ensemble, c.Quorum.TLS = true, &QuorumTLS{KeyStores: files}
			c.Quorum.Members = []raftfsm.Member{{ID: 1, QuorumAddr: "127.0.0.1:0", ElectionAddr: "127.0.0.1:0"}}
			c.Quorum.ID = 1
		}},
		{"metrics", "Metrics.Handler", func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0"} }},
	} {
		cfg := Config{Memory: true}
		tt.change(&cfg)
		if s, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v does not name %s", tt.name, err, tt.says)
			if s != nil {
				_ = s.Close()
			}
		}
	}

	s := must.Get(Start(t.Context(), Config{Memory: true, Admin: &Admin{Addr: "127.0.0.1:0"}, Auth: Auth{SuperDigest: superDigest}}))(t)
	defer s.Close()
	<-s.Ready()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		command := map[string]string{http.MethodGet: "snapshot?streaming=true", http.MethodPost: "restore"}[method]
		req := must.Get(http.NewRequestWithContext(t.Context(), method, s.AdminURL()+"/"+command, strings.NewReader("")))(t)
		req.Header.Set("Authorization", superAuth)
		resp := must.Get(http.DefaultClient.Do(req))(t) //nolint:bodyclose // closed below
		body := must.Get(io.ReadAll(resp.Body))(t)
		_ = resp.Body.Close()
		if resp.StatusCode < 500 || !strings.Contains(string(body), "Config.Env.Formats") {
			t.Errorf("%s: %s %s", command, resp.Status, body)
		}
	}
}
