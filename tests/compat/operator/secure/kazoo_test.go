package secure

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/tools"
)

// TestKazoo makes Kazoo authenticate with a digest, with SASL and with a certificate.
func TestKazoo(t *testing.T) {
	need(t, "openssl")
	t.Parallel()
	python := tools.Find(t).Python
	c := newCerts(t)
	c.issue("server", pkix.Name{CommonName: "server"}, time.Hour)
	c.issue("alice", pkix.Name{CommonName: "alice", Organization: []string{"Example"}}, time.Hour)
	p := zkgo(t, file(t, "jaas.conf", jaas), []string{
		"ssl.keyStore.location=" + c.encrypted("server"), "ssl.keyStore.password=" + storePassword,
		"ssl.trustStore.location=" + c.path("ca.pem"),
	})
	tls := fmt.Sprintf(`{"use_ssl": true, "ca": %q, "certfile": %q, "keyfile": %q}`, c.path("ca.pem"), c.path("alice.pem"), c.path("alice.key"))
	sasl := func(password string) string {
		return fmt.Sprintf(`{"sasl_options": {"mechanism": "DIGEST-MD5", "username": "bob", "password": %q}}`, password)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, filepath.Join("clients", "kazoo_secure.py"),
		"nobody|"+p.plain+"|", `digest|`+p.plain+`|{"auth_data": [["digest", "eve:pw"]]}`,
		"sasl|"+p.plain+"|"+sasl("secret"), "sasl-wrong|"+p.plain+"|"+sasl("guess"), "x509|"+p.secure+"|"+tls,
	).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{
		"nobody: refused InvalidACLError",
		"digest: ACL ['digest:eve:tPVS62yQF/M0lNvU6mzotOuRJxo=']",
		"sasl: ACL ['sasl:bob']",
		"sasl-wrong: not let in",
		"x509: ACL ['x509:CN=alice,O=Example']",
	}
	if got := strings.TrimSpace(string(out)); got != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
