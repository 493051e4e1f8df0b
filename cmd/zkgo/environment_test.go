package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/server"
)

// TestEveryCommandSeesTheSettings checks that all commands that read a zoo.cfg also read the system
// properties in the environment, and accept --set.
func TestEveryCommandSeesTheSettings(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(config, []byte("dataDir="+filepath.ToSlash(dir)+"/data\nclientPort=0\nadmin.enableServer=false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZOO_CONF_DIR", dir)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, command := range [][]string{
		{"server", config}, {"server"}, {"config", "check", config}, {"config", "show", config}, {"config", "show"},
		{"health", config}, {"container"}, {"container", config}, {"testserver", config},
		{"import", "--from", dir, config}, {"export", "--to-zookeeper", dir + "/zk", config},
		{"recover", "--dry-run", config}, {"restore", "--config", config, dir + "/nosuch.zkb"},
	} {
		for _, c := range []struct {
			name, value, want string
			flags             []string
		}{
			{"SERVER_JVMFLAGS", "-Xmx1g -Dzookeeper.ssl.clientAuth=perhaps", "SERVER_JVMFLAGS: ssl.clientAuth: ", nil},
			{"JVMFLAGS", "-Dzookeeper.ssl.clientAuth=perhaps", "JVMFLAGS: ssl.clientAuth: ", nil},
			{"JVMFLAGS", "", "--set: ssl.clientAuth: ", []string{"--set", "ssl.clientAuth=perhaps"}},
		} {
			t.Run(strings.Join(command, " ")+c.name, func(t *testing.T) {
				t.Setenv(c.name, c.value)
				var out, diag bytes.Buffer
				err := run(ended, append(command, c.flags...), strings.NewReader(""), &out, &diag)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		}
	}
	t.Setenv("JVMFLAGS", "-Dzookeeper.ssl.clientAuth=perhaps")
	if _, _, err := new(testFlags).serverConfig(); err != nil {
		t.Errorf("a test server without a file: %v", err)
	}
}

// TestHealthHasTheServersFlags: we should query a server with the flags and variables that
// started it.
func TestHealthHasTheServersFlags(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.Context(), server.Config{Memory: true, ClientAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	<-s.Ready()
	_, port, err := net.SplitHostPort(s.ClientAddr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(config, []byte("dataDir="+filepath.ToSlash(dir)+"\nclientPortAddress=127.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range []string{"--set clientPort=PORT", "--client-port PORT --log-format json --log-level=warn --data-dir " + dir} {
		out, _, err := zkgo(t, append([]string{"health", config}, strings.Fields(strings.ReplaceAll(flags, "PORT", port))...)...)
		if err != nil || out != "Mode: standalone\n" {
			t.Errorf("%s: %q, %v", flags, out, err)
		}
	}
	f := healthFlags{serverFlags: serverFlags{config: config, clientPort: unset, getenv: environ("SERVER_JVMFLAGS=-Dzookeeper.clientPort=" + port)}}
	if targets, err := f.targets(healthCommand()); err != nil || targets[0].Addr != "127.0.0.1:"+port {
		t.Errorf("%+v, %v", targets, err)
	}
}

// TestNothingListensForClients: the log of a server without a client port should not claim
// that it listens for clients.
func TestNothingListensForClients(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.Context(), server.Config{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b strings.Builder
	announce(slog.New(slog.NewTextHandler(&b, nil)), s, zoocfg.Default())
	if text := b.String(); strings.Contains(text, "listens for clients") || strings.Contains(text, "addresses=") || !strings.Contains(text, "without a port for clients") {
		t.Error(text)
	}
}
