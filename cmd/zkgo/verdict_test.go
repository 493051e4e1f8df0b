package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"
)

// configuration is a zoo.cfg with the result that every command must report.
type configuration struct {
	name, myid, text string
	refused          []string // parts of the error; none: the file is valid
}

// configurations returns configurations that use these files in a directory DIR: the
// empty directory data, the file plain, the key store key.p12 with the correct
// password, the trust store ca.pem, and jaas.conf.
func configurations() []configuration {
	const (
		base   = "dataDir=DIR/data\nclientPort=0\nadmin.enableServer=false\n"
		three  = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
		secure = "secureClientPort=2281\nssl.keyStore.location=DIR/key.p12\nssl.trustStore.location=DIR/ca.pem\nssl.keyStore.password="
		quorum = "ssl.quorum.keyStore.location=DIR/key.p12\nssl.quorum.trustStore.location=DIR/ca.pem\nssl.quorum.keyStore.password="
		admin  = "dataDir=DIR/data\nclientPort=2181\nadmin.serverPort=8081\nadmin.forceHttps=true\n" + quorum
		sasl   = "quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\njava.security.auth.login.config="
	)
	return []configuration{
		{"alone", "", base, nil},
		{"an ensemble", "1", base + three, nil},
		{"id 0", "0", base + three + "server.0=d:2888:3888\n", nil},
		{"0.0.0.0 in the own line", "1", base + strings.Replace(three, "=a:", "=0.0.0.0:", 1), nil},
		// ZooKeeper, too, starts and doesn't listen: config check warns.
		{"no client port", "", "dataDir=DIR/data\nclientport=2181\n", nil},
		{"directories that are to be made", "", "dataDir=DIR/data/x/y\ndataLogDir=DIR/data/z\nclientPort=0\n", nil},
		{"TLS for clients", "", base + secure + "right\n", nil},
		{"TLS between servers", "1", base + three + "sslQuorum=true\n" + quorum + "right\n", nil},
		{"TLS of the AdminServer", "", admin + "right\n", nil},
		{"SASL between servers", "1", base + three + sasl + "DIR/jaas.conf\n", nil},
		{"an audit log", "", base + "audit.enable=true\naudit.file=DIR/data/audit.log\n", nil},
		{"a port of the AdminServer's by default", "", "dataDir=DIR/data\nclientPort=8080\n", nil},
		{"two ports of one number on two hosts", "", "dataDir=DIR/data\nclientPort=2181\nclientPortAddress=127.0.0.1\nsecureClientPortAddress=127.0.0.2\n" +
			strings.Replace(secure, "2281", "2181", 1) + "right\n", nil},

		{"a bad value", "", base + "tickTime=x\n", []string{"zoo.cfg:4: tickTime: expected"}},
		{"several errors", "", "dataDir=DIR/plain\nclientPort=x\ntickTime=y\n", []string{"zoo.cfg:2: clientPort", "zoo.cfg:3: tickTime"}},
		{"several reasons", "9", "dataDir=DIR/data\nclientPort=2281\n" + three + secure + "wrong\n",
			[]string{"server id 9 is not among", "TLS for clients", "clientPort and secureClientPort"}},
		{"no myid", "", base + three, []string{"myid file is missing"}},
		{"an id that is not listed", "9", base + three, []string{"server id 9 is not among"}},
		{"an id too large", "1", base + three + "server.256=d:2888:3888\n", []string{"zoo.cfg:9: server.256", "too large"}},
		{"no limits of an ensemble", "1", base + strings.Replace(three, "initLimit=5\nsyncLimit=2\n", "", 1), []string{"initLimit is not set", "syncLimit is not set"}},
		{"one address twice", "1", base + strings.Replace(three, "=b:", "=A:", 1), []string{"server.1 and server.2 have the same quorum address"}},
		{"not support key store", "", base + strings.Replace(secure, "key.p12", "nosuch.p12", 1) + "right\n", []string{"TLS for clients", "nosuch.p12"}},
		{"a wrong password for clients", "", base + secure + "wrong\n", []string{"TLS for clients", "password"}},
		{"a wrong password between servers", "1", base + three + "sslQuorum=true\n" + quorum + "wrong\n", []string{"TLS between servers", "password"}},
		{"a wrong password of the AdminServer", "", admin + "wrong\n", []string{"TLS of the AdminServer", "password"}},
		{"no JAAS file", "1", base + three + sasl + "DIR/nosuch.conf\n", []string{"java.security.auth.login.config", "nosuch.conf"}},
		{"no section of a JAAS file", "1", base + three + sasl + "DIR/jaas.conf\nquorum.auth.server.saslLoginContext=Other\n", []string{"saslLoginContext", "Other"}},
		{"quotes around an address", "", "dataDir=DIR/data\nclientPort=2181\nclientPortAddress=\"127.0.0.1\"\n", []string{"is not a host"}},
		{"typographic quotes", "", "dataDir=DIR/data\nclientPort=2181\nclientPortAddress=“127.0.0.1”\n", []string{"clientPortAddress", "is not a host"}},
		{"quotes in a server line", "1", base + strings.Replace(three, "=b:2888", "=\"b\":2888", 1), []string{"server.2", "is not a host"}},
		{"quotes around the AdminServer's address", "", "dataDir=DIR/data\nclientPort=2181\nadmin.serverAddress='127.0.0.1'\n", []string{"admin.serverAddress", "is not a host"}},
		{"a file for a directory", "", "dataDir=DIR/plain\nclientPort=0\n", []string{"dataDir", "plain"}},
		{"a file above the directory of the log", "", base + "dataLogDir=DIR/plain/log\n", []string{"dataLogDir", "plain"}},
		{"a directory that is not to be made", "", "dataDir=DIR/missing\nclientPort=0\ndatadir.autocreate=false\n", []string{"dataDir", "missing", "datadir.autocreate"}},
		{"a directory of another user", "", "dataDir=DIR/foreign\nclientPort=0\n", []string{"dataDir", "cannot write to", "foreign"}},
		{"no directory of the audit log", "", base + "audit.enable=true\naudit.file=DIR/missing/audit.log\n", []string{"audit.file", "missing"}},
		{"a directory for the audit log", "", base + "audit.enable=true\naudit.file=DIR/nothing\n", []string{"audit.file", "is a directory"}},
		{"two uses of a port", "", "dataDir=DIR/data\nclientPort=7000\nmetricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n" +
			"metricsProvider.httpPort=7000\n", []string{"clientPort and metricsProvider.httpPort both listen"}},
		{"the AdminServer's port", "", "dataDir=DIR/data\nclientPort=2181\nadmin.serverPort=2181\n", []string{"clientPort and admin.serverPort both listen"}},
		{"the port for the other servers", "1", "dataDir=DIR/data\nclientPort=2888\n" + three, []string{"clientPort and server.1 both listen"}},
		{"the secure port", "", "dataDir=DIR/data\nclientPort=2281\n" + secure + "right\n", []string{"clientPort and secureClientPort both listen"}},
	}
}

// TestOneVerdict checks that all commands that read a zoo.cfg accept the same files,
// and reject the others for the same reasons. It sets the environment for zkgo
// container.
func TestOneVerdict(t *testing.T) {
	key, ca := keyStores(t)
	commands := []struct {
		args []string
		own  string // the error of a command that accepts the file but has nothing to do
	}{
		{[]string{"config", "check", "CFG"}, ""},
		{[]string{"server", "CFG"}, "context canceled"},
		{[]string{"container"}, "context canceled"},
		{[]string{"import", "--from", "DIR/nothing", "CFG"}, "nothing"},
		{[]string{"recover", "--dry-run", "CFG"}, "no state"},
		{[]string{"restore", "--config", "CFG", "DIR/nosuch.zkb"}, "nosuch.zkb"},
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range configurations() {
		for _, command := range commands {
			t.Run(c.name+"/"+command.args[0], func(t *testing.T) {
				if strings.Contains(c.text, "foreign") && os.Getuid() <= 0 {
					t.Skip("root can write to every directory, and Windows has other rights")
				}
				dir := c.write(t, key, ca)
				replace := strings.NewReplacer("CFG", filepath.Join(dir, "zoo.cfg"), "DIR", dir)
				var args []string
				for _, arg := range command.args {
					args = append(args, replace.Replace(arg))
				}
				for name, value := range map[string]string{"ZOO_CONF_DIR": dir, "ZOO_DATA_DIR": filepath.Join(dir, "other"), "ZOO_DATA_LOG_DIR": filepath.Join(dir, "log")} {
					t.Setenv(name, value)
				}
				var out, diag bytes.Buffer
				err := run(ended, args, strings.NewReader(""), &out, &diag)
				switch {
				case len(c.refused) > 0 && err == nil:
					t.Fatal("accepted")
				case len(c.refused) == 0 && err != nil && (command.own == "" || !strings.Contains(err.Error(), command.own)):
					t.Fatalf("refused: %v", err)
				}
				for _, want := range c.refused {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v\nsays nothing of %q", err, want)
					}
				}
				if code, _ := codeOf(err); len(c.refused) > 0 && code != 1 {
					t.Errorf("exit code %d", code)
				}
			})
		}
	}
}

// write creates the directory that a configuration uses.
func (c *configuration) write(t *testing.T, key, ca []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"data": 0o700, "nothing": 0o700, "foreign": 0o500} {
		if err := os.Mkdir(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"plain": "", "key.p12": string(key), "ca.pem": string(ca), "zoo.cfg": strings.ReplaceAll(c.text, "DIR", filepath.ToSlash(dir)), "data/myid": c.myid,
		"jaas.conf": "QuorumServer {\n org.apache.zookeeper.server.auth.DigestLoginModule required\n user_q=\"pw\";\n};\n" +
			"QuorumLearner {\n org.apache.zookeeper.server.auth.DigestLoginModule required\n username=\"q\"\n password=\"pw\";\n};\n",
	}
	for name, text := range files {
		if text == "" && name != "plain" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// keyStores returns a PKCS #12 key store with the correct password, and its
// certificate as PEM.
func keyStores(t *testing.T) (key, ca []byte) {
	t.Helper()
	file, _ := certificate(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	private, rest := pem.Decode(text)
	public, _ := pem.Decode(rest)
	k, err := x509.ParsePKCS8PrivateKey(private.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(public.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = pkcs12.Modern.Encode(k, cert, nil, "right"); err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(public)
}
