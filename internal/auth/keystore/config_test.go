package keystore

import (
	"crypto/tls"
	"strings"
	"testing"
)

// TestUnusableNames checks that we drop unsupported names from a list, with a warning, and
// return an error if no other name is left.
func TestUnusableNames(t *testing.T) {
	t.Parallel()
	id := issue(t, "server")
	key, trust := keyStores(t, id)[0], trustStores(t, id)[0]
	const good, bad = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_DHE_RSA_WITH_AES_128_CBC_SHA"
	for _, tt := range []struct {
		protocols, suites []string
		warned            string
		failed            string
	}{
		{protocols: []string{"TLSv1", "TLSv1.1", " TLSv1.2"}, warned: `"TLSv1" "TLSv1.1"`},
		{protocols: []string{"TLSv1.2"}, suites: []string{bad, good + " "}, warned: `"` + bad + `"`},
		{protocols: []string{"TLSv1.2"}, suites: []string{good}},
		{protocols: []string{"TLSv1.1"}, failed: "ssl.protocol"},
		{protocols: []string{"TLSv1.2", "TLSv9"}, failed: "TLSv9"},
		{suites: []string{bad}, failed: bad},
	} {
		o := Options{Key: key, Trust: trust, Protocols: tt.protocols, CipherSuites: tt.suites, Reload: true}
		var warned []string
		warn := func(err error) {
			name, _, _ := strings.Cut(err.Error(), " ")
			warned = append(warned, name)
		}
		c, err := ServerConfig(o, warn)
		peer, peerErr := PeerConfig(o, nil)
		if tt.failed != "" {
			for _, err := range []error{err, peerErr} {
				if err == nil || !strings.Contains(err.Error(), tt.failed) {
					t.Errorf("%q %q: %v", tt.protocols, tt.suites, err)
				}
			}
			continue
		}
		if err != nil || peerErr != nil || strings.Join(warned, " ") != tt.warned {
			t.Errorf("%q %q: %v, %v, warned of %q", tt.protocols, tt.suites, err, peerErr, warned)
			continue
		}
		for _, c := range []*tls.Config{c, peer()} {
			if c.MinVersion != tls.VersionTLS12 || c.MaxVersion != tls.VersionTLS12 || len(c.CipherSuites) != min(len(tt.suites), 1) {
				t.Errorf("%q %q: versions %x to %x, %d suites", tt.protocols, tt.suites, c.MinVersion, c.MaxVersion, len(c.CipherSuites))
			}
		}
	}
}
