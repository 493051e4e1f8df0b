package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// fetchTLS gets a URL with a client's TLS configuration.
func fetchTLS(t *testing.T, url string, config *tls.Config) (code int, body string, err error) {
	t.Helper()
	return fetchAs(t, url, "", config)
}

// fetchAs is fetchTLS with an Authorization header, if it isn't empty.
func fetchAs(t *testing.T, url, auth string, config *tls.Config) (code int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	req.Close = true
	tr := &http.Transport{TLSClientConfig: config}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestAdminTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, test := range []struct {
		auth                   string
		only                   bool
		plain, stranger, alice bool // which clients get an answer
	}{
		{"none", false, true, true, true},
		{"none", true, false, true, true},
		{"need", true, false, false, true},
		{"need", false, true, false, true},
	} {
		t.Run(fmt.Sprintf("%s only=%v", test.auth, test.only), func(t *testing.T) {
			t.Parallel()
			options := a.options()
			options.ClientAuth = test.auth
			s := startServer(t, func(c *Config) {
				c.Admin = &Admin{Addr: "127.0.0.1:0", TLS: &AdminTLS{KeyStores: options, Only: test.only}}
			})
			<-s.Ready()
			answered := func(scheme string, config *tls.Config) bool {
				code, body, err := fetchTLS(t, scheme+"://"+s.AdminAddr()+"/commands/ruok", config)
				return err == nil && code == http.StatusOK && strings.Contains(body, `"ruok"`)
			}
			for _, who := range []struct {
				name, scheme string
				config       *tls.Config
				want         bool
			}{
				{"plaintext", "http", nil, test.plain},
				{"no certificate", "https", a.client(nil), test.stranger},
				{"certificate", "https", a.client(alice), test.alice},
			} {
				if got := answered(who.scheme, who.config); got != who.want {
					t.Errorf("%s: answered %v", who.name, got)
				}
			}
		})
	}
}

// TestAdminTLSSilentClient: a silent connection delays neither other clients nor the
// server's shutdown.
func TestAdminTLSSilentClient(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	options := a.options()
	options.ClientAuth = "none"
	s := startServer(t, func(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0", TLS: &AdminTLS{KeyStores: options}} })
	<-s.Ready()
	silent, err := net.Dial("tcp", s.AdminAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if code, _ := fetch(t, "http://"+s.AdminAddr()+"/livez"); code != http.StatusOK {
		t.Errorf("livez: %d", code)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the silent connection is still open")
	}
}

// Clients that the AdminServer refuses appear in the log, but don't fill it.
func TestRefusedHandshakesOfTheAdminServer(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	options := a.options()
	options.ClientAuth = "need"
	var out logBuffer
	s := startServer(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&out, nil))
		c.Admin = &Admin{Addr: "127.0.0.1:0", TLS: &AdminTLS{KeyStores: options, Only: true}}
	})
	<-s.Ready()
	const attempts = 5
	for range attempts {
		if _, _, err := fetchTLS(t, "https://"+s.AdminAddr()+"/commands/ruok", a.client(nil)); err == nil {
			t.Fatal("a client without a certificate gets an answer")
		}
	}
	about := func() (lines []string) {
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "admin.serverPort: the TLS handshake failed") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	eventually(t, "a refused handshake in the log", func() bool { return len(about()) == 1 })
	if line := about()[0]; !strings.Contains(line, "level=WARN") || !strings.Contains(line, "client=127.0.0.1:") {
		t.Errorf("the line doesn't name the client: %s", line)
	}
	eventually(t, "a line that counts the others", func() bool {
		s.complaints.CatchUp(s.clock() + int64(limits.ComplaintEvery))
		return len(about()) > 1
	})
}

func TestAdminTLSFromZooCfg(t *testing.T) {
	t.Parallel()
	const store = "ssl.quorum.keyStore.location=/k.pem\nssl.quorum.trustStore.location=/t.pem\n"
	for text, want := range map[string]string{
		"":                                   "plain",
		"admin.forceHttps=true":              "error ssl.quorum.keyStore.location",
		"admin.portUnification=true":         "error ssl.quorum.keyStore.location",
		store + "admin.needClientAuth=true":  "error admin.forceHttps",
		store + "admin.forceHttps=true":      "/k.pem none true",
		store + "admin.portUnification=true": "/k.pem none false",
		store + "admin.forceHttps=true\nadmin.needClientAuth=true": "/k.pem need true",
	} {
		z, err := zoocfg.ParseText("zoo.cfg", "clientPort=0\ndataDir="+filepath.Join(t.TempDir(), "x")+"\n"+text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		c, err := translate(z) // these key stores don't exist
		got := "plain"
		if err != nil {
			got = "error " + err.Error()
		} else if s := c.Admin.TLS; s != nil {
			got = fmt.Sprint(s.Key.Location, " ", s.ClientAuth, " ", s.Only)
		}
		if key, isError := strings.CutPrefix(want, "error "); got != want && !(isError && strings.Contains(got, key)) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	_, err := Start(t.Context(), Config{Memory: true, Env: Env{Formats: allFormats()}, Admin: &Admin{Addr: "127.0.0.1:0", TLS: &AdminTLS{KeyStores: KeyStores{Key: KeyStore{Location: "/no/such.pem"}}}}})
	if err == nil || !strings.Contains(err.Error(), "/no/such.pem") {
		t.Errorf("started without a key store: %v", err)
	}
}

func TestAdminProfiles(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		s := startServer(t, func(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0", Profiles: on} })
		<-s.Ready()
		code, _ := fetch(t, "http://"+s.AdminAddr()+"/debug/pprof/goroutine?debug=1")
		if (code == http.StatusOK) != on {
			t.Errorf("profiles %v: status %d", on, code)
		}
		if code, _ := fetch(t, "http://"+s.AdminAddr()+"/commands/ruok"); code != http.StatusOK {
			t.Errorf("profiles %v: ruok %d", on, code)
		}
	}
}
