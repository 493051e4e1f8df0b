package main

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/server/zktest"
)

// TestCLI checks flags in zkCli.sh's form and in ours, the messages about the
// connection, and the exit code.
func TestCLI(t *testing.T) {
	t.Parallel()
	addr := zktest.Run(t).Addrs()[0]
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("digest:u:p:w\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	connected := "Connecting to " + addr + "\n\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null zxid: -1\n"
	for _, c := range []struct {
		args        []string
		out, errors string
		code        int
	}{
		{[]string{"-server", addr, "-q", "create", "-s", "/a", "-v"}, "", "Unrecognized option: -v\n", 2},
		{[]string{"-server", addr, "create", "/a"}, "", connected + "Created /a\n", 0},
		{[]string{"--server=" + addr, "-timeout", "20000", "-r", "-q", "ls", "/"}, "[a, zookeeper]\n", "", 0},
		{[]string{"-server", addr, "-waitforconnection", "--session-timeout", "20s", "--timeout", "20s", "-o", "json", "ls", "/a"}, `{"path":"/a","children":[]}` + "\n", "", 0},
		{[]string{"-server", addr, "-q", "get", "/x"}, "", "Node does not exist: /x\n", 1},
		{[]string{"-server", addr, "-q", "nothing"}, "", "Command not found: nothing. See: help\n", 2},
		{[]string{"-server", addr, "-q", "--auth", "@" + secret, "whoami"}, "Auth scheme: User\nip: pipe\ndigest: u\n", "", 0},
		{[]string{"-server", addr + "/a", "-q", "--auth", "digest:u:p", "create", "/b", "", "auth::r"}, "", "Created /b\n", 0},
	} {
		out, errors, err := zkgo(t, append([]string{"cli"}, c.args...)...)
		code := 0
		if err != nil {
			var tell bool
			if code, tell = codeOf(err); tell {
				t.Errorf("%q: %v", c.args, err)
			}
		}
		if out = strings.ReplaceAll(out, "ip: 127.0.0.1", "ip: pipe"); out != c.out || errors != c.errors || code != c.code {
			t.Errorf("%q: %q, %q, %d\nwant %q, %q, %d", c.args, out, errors, code, c.out, c.errors, c.code)
		}
	}
}

func TestCLIRefuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-nonsense ls /":                 "unknown shorthand flag",
		"--output xml ls /":              "--output",
		"-timeout soon ls /":             "--session-timeout",
		"-timeout -5 ls /":               "--session-timeout",
		"--timeout 5 ls /":               "--timeout",
		"--auth digest ls /":             "--auth",
		"--auth @/nothing/there ls /":    "/nothing/there",
		"--tls-key x ls /":               "--tls-cert",
		"--tls-ca /nothing/ca.pem ls /":  "/nothing/ca.pem",
		"-client-configuration /no ls /": "/no",
		"--color blue ls /":              "--color",
		"-server a:x ls /":               "a:x",
	} {
		_, errors, err := zkgo(t, append([]string{"cli"}, strings.Fields(line)...)...)
		text := errors
		if err != nil {
			text += err.Error()
		}
		if err == nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q in it", line, text, want)
		}
	}
}

// TestSecretsAreNotShown checks that errors about credentials don't contain them.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	_, _, err := credentials("--auth", "mypassword")
	if err == nil || strings.Contains(err.Error(), "mypassword") {
		t.Error(err)
	}
}

func TestTwoHyphens(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-server a ls -s /":          "--server a ls -s /",
		"--server a ls":              "--server a ls",
		"-server=a ls":               "--server=a ls",
		"-r -waitforconnection ls":   "-r --waitforconnection ls",
		"-o json -timeout 5 ls -o x": "-o json --session-timeout 5 ls -o x",
		"-timeout=5 --timeout 5s ls": "--session-timeout=5 --timeout 5s ls",
		"-ojson ls":                  "-ojson ls",
		"-server":                    "--server",
		"-r get -server":             "-r get -server",
		"-- -server":                 "-- -server",
	} {
		if got := twoHyphens(cliCommand(), strings.Fields(line), false); strings.Join(got, " ") != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestCLIWithTLS checks the TLS flags and a properties file of the Java client.
func TestCLIWithTLS(t *testing.T) {
	t.Parallel()
	file, _ := certificate(t)
	ts := runsTestserver(t, "--set", "secureClientPort=0", "--set", "ssl.keyStore.location="+file, "--set", "ssl.trustStore.location="+file)
	addr := ts.ready.SecureConnectString
	_, port, _ := strings.Cut(addr, ":")
	java := filepath.Join(t.TempDir(), "client.properties")
	write := func(more string) {
		text := "# as zkCli.sh takes it\nzookeeper.client.secure=true\nzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty\n" +
			"zookeeper.ssl.keyStore.location : " + file + "\nzookeeper.ssl.trustStore.location=" + file + "\n" + more
		if err := os.WriteFile(java, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ls := func(timeout string, args []string) (out, said string, err error) {
		args = append([]string{"cli", "-q", "-waitforconnection", "-timeout", timeout}, append(args, "ls", "/")...)
		out, said, err = zkgo(t, args...)
		return out, said + errorText(err), err
	}
	works := func(args ...string) {
		t.Helper()
		if out, said, err := ls("60s", args); err != nil || out != "[zookeeper]\n" {
			t.Errorf("%q: %q %q", args, out, said)
		}
	}
	refused := func(args ...string) {
		t.Helper()
		said := ""
		for wait := 250 * time.Millisecond; wait < patience && !strings.Contains(said, "certificate"); wait *= 2 {
			var err error
			if _, said, err = ls(wait.String(), args); err == nil {
				t.Errorf("%q: connected", args)
				return
			}
		}
		if !strings.Contains(said, "certificate") {
			t.Errorf("%q does not say that it is about a certificate: %s", args, said)
		}
	}
	works("-server", addr, "--tls-ca", file, "--tls-cert", file)
	works("-server", addr, "--tls-ca", file, "--tls-cert", file, "--tls-key", file)
	works("-server", addr, "--tls-insecure", "--tls-cert", file)
	refused("-server", addr, "--tls", "--tls-cert", file)
	refused("-server", "localhost:"+port, "--tls-ca", file, "--tls-cert", file)
	works("-server", "localhost:"+port, "--tls-ca", file, "--tls-cert", file, "--tls-server-name", "127.0.0.1")
	write("")
	works("-server", addr, "-client-configuration", java)
	refused("-server", "localhost:"+port, "-client-configuration", java)
	write("zookeeper.ssl.hostnameVerification=false\n")
	works("-server", "localhost:"+port, "-client-configuration", java)
	ts.stdin.Close()
	ts.await(t, "stdin was closed")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSessionTimeoutFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"30000": 30 * time.Second, "5s": 5 * time.Second, "0": 0, "x": 0} {
		var got time.Duration
		if err := (durationFlag{&got, true}).Set(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestNoTLSUnlessAsked checks that without a flag the connection is plaintext.
func TestNoTLSUnlessAsked(t *testing.T) {
	t.Parallel()
	var f connectFlags
	if config, err := f.tlsConfig(); config != nil || err != nil {
		t.Errorf("%v, %v", config, err)
	}
	f.tls = true
	if config, err := f.tlsConfig(); err != nil || config.MinVersion != tls.VersionTLS12 || config.InsecureSkipVerify {
		t.Errorf("%v, %v", config, err)
	}
}

// TestCompletionOfCommands checks that the shell completion knows the commands.
func TestCompletionOfCommands(t *testing.T) {
	t.Parallel()
	names, _ := cliCommand().ValidArgsFunction(&cobra.Command{}, nil, "")
	if len(names) < 28 || !strings.HasPrefix(names[0], "addWatch\t") {
		t.Errorf("%q", names)
	}
}

// TestCLIWithSASL checks the SASL flag and a wrong password.
func TestCLIWithSASL(t *testing.T) {
	t.Parallel()
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	text := "Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_bob=\"secret\";\n};\n"
	if err := os.WriteFile(jaas, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ts := runsTestserver(t, "--set", "java.security.auth.login.config="+jaas)
	addr := ts.ready.ConnectString
	out, said, err := zkgo(t, "cli", "-server", addr, "-q", "--sasl", "bob:secret", "whoami")
	if err != nil || !strings.Contains(out, "sasl: bob\n") {
		t.Errorf("%q %q %v", out, said, err)
	}
	out, said, err = zkgo(t, "cli", "-server", addr, "-q", "--sasl", "bob:wrong", "ls", "/")
	if err == nil || out != "" || strings.Contains(said, "wrong") || !strings.Contains(said, "authentication refused") {
		t.Errorf("a wrong password: %q %q %v", out, said, err)
	}
	ts.stdin.Close()
	ts.await(t, "stdin was closed")
}
