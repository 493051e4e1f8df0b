package formats_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/formats"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// A zoo.cfg that may name key stores needs the formats when it is read.
func ExampleAll() {
	dir, err := os.MkdirTemp("", "zkgo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "zoo.cfg")
	text := "dataDir=" + dir + "\nclientPort=0\nadmin.enableServer=false\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	cfg, err := server.LoadConfig(file, formats.All())
	if err != nil {
		fmt.Println(err)
		return
	}
	srv, err := server.Start(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(srv.Close())
	// Output: <nil>
}

// TestAll checks that a server gets every format: with All it reads the configured
// key store, and serves its state as a file that it can restore.
func TestAll(t *testing.T) {
	t.Parallel()
	cfg := server.Config{Memory: true, Auth: server.Auth{SuperDigest: "super:lK75jTNcA+U9vtVEw5vB51mj/w4="}, Admin: &server.Admin{Addr: "127.0.0.1:0"}, Env: server.Env{Formats: formats.All()}}
	for _, ask := range []func(*server.Config, server.KeyStores){
		func(c *server.Config, k server.KeyStores) {
			c.SecureAddr, c.TLS = "127.0.0.1:0", &server.TLS{KeyStores: k}
		},
		func(c *server.Config, k server.KeyStores) {
			c.Admin = &server.Admin{Addr: "127.0.0.1:0", TLS: &server.AdminTLS{KeyStores: k}}
		},
	} {
		c := cfg
		ask(&c, server.KeyStores{Key: server.KeyStore{Location: "/no/such.jks"}})
		if _, err := server.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "/no/such.jks") {
			t.Errorf("%v: this is not the error of a key store", err)
		}
	}

	srv := must.Get(server.Start(t.Context(), cfg))(t)
	defer srv.Close()
	<-srv.Ready()
	do := func(method, command string, body io.Reader) []byte {
		req := must.Get(http.NewRequestWithContext(t.Context(), method, srv.AdminURL()+"/"+command, body))(t)
		req.Header.Set("Authorization", "digest super:secret")
		resp := must.Get(http.DefaultClient.Do(req))(t) //nolint:bodyclose // closed below
		defer resp.Body.Close()
		answer := must.Get(io.ReadAll(resp.Body))(t)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", command, resp.Status, answer)
		}
		return answer
	}
	state := do(http.MethodGet, "snapshot?streaming=true", nil)
	if !strings.HasPrefix(string(state), "ZKSN") {
		t.Fatalf("%q does not begin like a snapshot of ZooKeeper", state[:min(8, len(state))])
	}
	do(http.MethodPost, "restore", strings.NewReader(string(state)))
}
