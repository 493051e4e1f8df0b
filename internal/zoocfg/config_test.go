package zoocfg

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// noFiles is a file system without files.
func noFiles(path string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// parse parses a standalone configuration with extra lines.
func parse(t *testing.T, extra string, opts ...Option) *Config {
	t.Helper()
	c := must.Get(ParseText("zoo.cfg", "dataDir=/data\n"+extra, append([]Option{WithReadFile(noFiles)}, opts...)...))(t)
	return c
}

func TestDefault(t *testing.T) {
	t.Parallel()
	c := Default()
	c.readFile = noFiles
	must.Do(t, c.Validate())
	if c.ClientPort != 2181 || c.DataDir != "./zkgo-data" || c.DataLogDir != c.DataDir || c.Distributed() ||
		c.TickTime != 2*time.Second || c.MinSessionTimeout != 4*time.Second || c.MaxSessionTimeout != 40*time.Second ||
		c.PeerType != Participant || len(c.Warnings) != 0 {
		t.Errorf("got %+v", c)
	}
}

// TestDefaultAndServerLines checks that Default's port, which isn't a line of a file,
// doesn't contradict the one in the server's own line.
func TestDefaultAndServerLines(t *testing.T) {
	t.Parallel()
	c := Default()
	c.readFile = func(path string) ([]byte, error) {
		if path != "d/myid" {
			return noFiles(path)
		}
		return []byte("2\n"), nil
	}
	for _, set := range [][2]string{
		{"dataDir", "./d"}, {"server.1", "a:2888:3888;2180"}, {"server.2", "b:2888:3888;b:2182"},
		{"server.3", "c:2888:3888"}, {"initLimit", "10"}, {"syncLimit", "5"},
	} {
		must.Do(t, c.Set(set[0], set[1]))
	}
	for range 2 {
		must.Do(t, c.Validate())
		if !c.Distributed() || c.MyID != 2 || c.ClientPort != 2182 || c.ClientPortAddress != "b" {
			t.Errorf("got id %d and clients at %s:%d", c.MyID, c.ClientPortAddress, c.ClientPort)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	c := parse(t, "minSessionTimeout=1000\n")
	must := func(key, value string) {
		t.Helper()
		must.Do(t, c.Set(key, value))
	}
	must("tickTime", "500")
	if c.TickTime != 500*time.Millisecond || c.MinSessionTimeout != time.Second || c.MaxSessionTimeout != 10*time.Second {
		t.Errorf("timeouts %v and %v", c.MinSessionTimeout, c.MaxSessionTimeout)
	}
	must("minSessionTimeout", "-1")
	must("tickTime", "1000")
	if c.MinSessionTimeout != 2*time.Second {
		t.Errorf("unset minimum is %v", c.MinSessionTimeout)
	}
	must("dataDir", "/other")
	if c.DataLogDir != "/other" {
		t.Errorf("log stays at %s", c.DataLogDir)
	}
	must("dataLogDir", "/log")
	must("dataDir", "/data")
	if c.DataLogDir != "/log" {
		t.Errorf("log moved to %s", c.DataLogDir)
	}
	must("jute.maxbuffer", "4194304")
	if c.JuteExtraSize != 4<<20 {
		t.Errorf("extra size %d", c.JuteExtraSize)
	}
	must("jute.maxbuffer.extrasize", "10")
	must("jute.maxbuffer", "1000")
	if c.JuteMaxBuffer != 1000 || c.JuteExtraSize != 10 {
		t.Errorf("buffer %d and extra %d", c.JuteMaxBuffer, c.JuteExtraSize)
	}

	before := c.Clone()
	before.readFile, c.readFile = nil, nil
	for key, value := range map[string]string{
		"tickTime": "x", "clientPortAddress": "::1#", "clientPort": "65536", "peerType": "king", "server.1": "a:1", "group.1": "x", "weight.1": "",
		"skipACL": "true", "logStore": "sqlite", "admin.commandURL": "commands",
		"admin.serverPort": "65536", "jute.maxbuffer": "0", "snapCount": "1e5", "dataDir": "", "dataLogDir": "",
		"ssl.keyStore.type": "DER", "ssl.clientAuth": "maybe", "nio.sessionlessCnxnTimeout": "", "snapSizeLimitInKb": "9999999999999999999",
	} {
		var e *Error
		if err := c.Set(key, value); !errors.As(err, &e) || e.Key != key || e.File != "--set" {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
	if !reflect.DeepEqual(c, before) {
		t.Errorf("refused values left a trace:\n%+v\n%+v", c, before)
	}
}

func TestSetOnZeroValue(t *testing.T) {
	t.Parallel()
	var c Config
	if c.Set("tickTime", "1") == nil || c.Validate() == nil {
		t.Error("a zero Config must be refused")
	}
}

func TestWithSetCompletesFile(t *testing.T) {
	t.Parallel()
	_, err := ParseText("zoo.cfg", "clientPort=2181\n", WithReadFile(noFiles))
	if err == nil || !strings.Contains(err.Error(), "zoo.cfg: dataDir: dataDir is not set") {
		t.Errorf("got %v", err)
	}
	c, err := ParseText("zoo.cfg", "clientPort=2181\n", WithReadFile(noFiles), WithSet("dataDir", "/d"), WithSet("clientPort", "2182"))
	if err != nil || c.DataDir != "/d" || c.ClientPort != 2182 {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err = ParseText("zoo.cfg", "", WithSet("tickTime", "x")); err == nil {
		t.Error("a wrong value must be refused")
	}
}

func TestWithMyID(t *testing.T) {
	t.Parallel()
	c := parse(t, "initLimit=1\nsyncLimit=1\nserver.7=a:1:2;99\nserver.8=b:1:2\nserver.9=c:1:2\n", WithMyID(7))
	if self, ok := c.Self(); !ok || self.ID != 7 || c.ClientPort != 99 {
		t.Errorf("got %v, %v", self, c.ClientPort)
	}
}

func TestParseMissingFile(t *testing.T) {
	t.Parallel()
	_, err := Parse("testdata/no-such.cfg")
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "testdata/no-such.cfg: file is missing") {
		t.Errorf("got %v", err)
	}
	if _, err = Parse("testdata"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory: %v", err)
	}
}

func TestUnreadableMyID(t *testing.T) {
	t.Parallel()
	deny := func(path string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	_, err := ParseText("zoo.cfg", "dataDir=/data\n", WithReadFile(deny))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "/data/myid") {
		t.Errorf("got %v", err)
	}
}

func TestDynamicFileSyntax(t *testing.T) {
	t.Parallel()
	read := func(path string) ([]byte, error) {
		if path == "dyn" {
			return []byte("server.1=a:1:2\nserver.2=\\u00\n"), nil
		}
		return noFiles(path)
	}
	_, err := ParseText("zoo.cfg", "dataDir=/data\ndynamicConfigFile=dyn\n", WithReadFile(read))
	if err == nil || !strings.HasPrefix(err.Error(), "dyn:2: ") {
		t.Errorf("got %v", err)
	}
}

func TestEverySettingHasItsField(t *testing.T) {
	t.Parallel()
	c := reachable(t, strings.Join([]string{
		"maxCnxns=7", "nio.sessionlessCnxnTimeout=5000", "tcpKeepAlive=true", "client.portUnification=true",
		"snapCount=010", "snapSizeLimitInKb=#ff", "jute.maxbuffer=0x9fffff", "largeRequestThreshold=-1", "leaderServes=no", "forceSync=yes",
		"4lw.commands.whitelist=ruok, mntr ,,conf", "admin.serverPort=9090", "admin.enableServer=FALSE",
		"metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider", "metricsProvider.httpPort=7070",
		"ssl.keyStore.location=/k.pem", "ssl.keyStore.type=pem", "ssl.quorum.trustStore.password=x=y", "ssl.clientAuth=WANT",
		"ssl.enabledProtocols=TLSv1.2, TLSv1.3", "client.certReload=true", "sslQuorumReloadCertFiles=true",
		"znode.container.checkIntervalMs=100", "znode.container.maxNeverUsedIntervalMs=5", "readonlymode.enabled=true", "linearizableReads=true", "formationNeedsAll=true",
		"enforce.auth.enabled=true", "enforce.auth.schemes=sasl,digest", "autopurge.purgeInterval=24",
		"DigestAuthenticationProvider.superDigest=super:abc=", "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
		"ensembleAuthName=a,b", "logStore=WAL", "java.security.auth.login.config=/jaas.conf",
		"multiAddress.reachabilityCheckTimeoutMs=10",
	}, "\n"))
	for name, ok := range map[string]bool{
		"listeners":  c.MaxCnxns == 7 && c.SessionlessCnxnTimeout == 5*time.Second && c.TCPKeepAlive && c.PortUnification,
		"numbers":    c.SnapCount == 8 && c.SnapSizeLimitKB == 255 && c.JuteMaxBuffer == 0x9fffff && c.LargeRequestAt == Unset,
		"yes and no": !c.LeaderServes && c.ForceSync,
		"whitelist":  slices.Equal(c.FourLetterWhitelist, []string{"ruok", "mntr", "conf"}) && !c.FourLetterAll(),
		"admin":      c.Admin.Port == 9090 && c.Admin.PortSet && !c.Admin.Enable,
		"metrics":    c.Metrics.Enabled && c.Metrics.HTTPPort == 7070,
		"tls": c.TLS.KeyStore == Store{Location: "/k.pem", Type: "PEM"} && c.TLS.ClientAuth == "want" &&
			slices.Equal(c.TLS.EnabledProtocols, []string{"TLSv1.2", "TLSv1.3"}) && c.TLS.CertReload,
		"quorum tls": c.QuorumTLS.TrustStore.Password == "x=y" && c.QuorumTLS.CertReload && c.QuorumTLS.ClientHostnameVerification,
		"containers": c.ContainerCheckInterval == 100*time.Millisecond && c.ContainerMaxNeverUsed == 5*time.Millisecond,
		"auth": c.ReadOnlyMode && c.FormationNeedsAll && c.Auth.EnforceEnabled && len(c.Auth.EnforceSchemes) == 2 && c.Auth.SuperDigest == "super:abc=" &&
			strings.HasSuffix(c.Auth.Providers["1"], "SASLAuthenticationProvider") && len(c.Auth.EnsembleNames) == 2 && c.Auth.JAASFile == "/jaas.conf",
		"storage":  c.LogStore == "wal" && c.AutopurgeInterval == 24*time.Hour && c.MultiAddressReachabilityTimeout == 10*time.Millisecond,
		"warnings": len(c.Warnings) == 0 && len(c.Ignored) == 0,
	} {
		if !ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if err := c.Set("4lw.commands.whitelist", "ruok,*"); err != nil || !c.FourLetterAll() {
		t.Errorf("whitelist %v, %v", c.FourLetterWhitelist, err)
	}
}

// TestEveryKeyWorks sets every known key to a valid value and checks that exactly one
// field changes.
func TestEveryKeyWorks(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, k := range keyTable() {
		if names[k.name] {
			t.Errorf("%s is in the table twice", k.name)
		}
		names[k.name] = true
		values := []string{"true", "false", "yes", "no", "3", "41", "/x", "observer", "want", "PEM", "bolt", "SHA-256", "50%", "0.5",
			"org.apache.zookeeper.metrics.impl.NullMetricsProvider"}
		took, changed := false, false
		for _, v := range values {
			c := parse(t, "")
			before := c.Clone()
			if c.Set(k.name, v) != nil {
				continue
			}
			took = true
			changed = changed || differs(c, before)
			if k.ignored && !slices.Equal(c.Ignored, []string{k.name}) {
				t.Errorf("%s is not listed as ignored: %v", k.name, c.Ignored)
			}
		}
		if !took || changed == k.ignored {
			t.Errorf("%s: took a value %v, changed a field %v, ignored %v", k.name, took, changed, k.ignored)
		}
	}
}

// differs compares the fields of two configurations that a server reads.
func differs(a, b *Config) bool {
	strip := func(c *Config) *Config {
		c = c.Clone()
		c.origin, c.readFile, c.Warnings, c.Ignored = nil, nil, nil, nil
		return c
	}
	return !reflect.DeepEqual(strip(a), strip(b))
}

func TestClone(t *testing.T) {
	t.Parallel()
	c := parse(t, "server.1=a:1:2\ngroup.1=1\nweight.1=1\n4lw.commands.whitelist=ruok\nauthProvider.x=y\n")
	d := c.Clone()
	d.Servers[0].Addrs[0].Host, d.Groups[1][0], d.Weights[1] = "b", 9, 9
	d.FourLetterWhitelist[0], d.Auth.Providers["x"], d.Warnings[0].Key = "stat", "z", "k"
	must.Do(t, d.Set("tickTime", "1"))
	if c.Servers[0].Addrs[0].Host != "a" || c.Groups[1][0] != 1 || c.Weights[1] != 1 || c.isSet("tickTime") ||
		c.FourLetterWhitelist[0] != "ruok" || c.Auth.Providers["x"] != "y" || c.Warnings[0].Key == "k" {
		t.Errorf("the copy shares memory: %+v", c)
	}
}

func TestConfText(t *testing.T) {
	t.Parallel()
	c := parse(t, "clientPort=2181\n")
	want := "clientPort=2181\nsecureClientPort=-1\ndataDir=/data/version-2\ndataDirSize=10\n" +
		"dataLogDir=/data/version-2\ndataLogSize=20\ntickTime=3000\nmaxClientCnxns=60\nminSessionTimeout=6000\n" +
		"maxSessionTimeout=60000\nclientPortListenBacklog=-1\nserverId=0\n"
	if got := c.ConfText(10, 20, "version=0"); got != want {
		t.Errorf("got\n%s", got)
	}
	c = parse(t, "initLimit=10\nsyncLimit=5\nserver.1=a:2888:3888;2181\nserver.2=b:2888:3888\nserver.3=c:2888:3888:observer\n", WithMyID(1))
	got := c.ConfText(0, 0, c.Membership.Text())
	want = "serverId=1\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=3888\nquorumPort=2888\npeerType=0\nmembership: \n" +
		"server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:participant\nserver.3=c:2888:3888:observer\nversion=0"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s", got)
	}
}

func TestPropertiesOfAClient(t *testing.T) {
	t.Parallel()
	got, err := Properties("\ufeff# C:\\zk\\\n a = b \nc:d\\\n   e\nf g\nh=i=j\nk\nl=C:\\\\x\nm=abc\\\\\nn=\\u0041\\=\\#\na2=1\na2=2\n")
	want := map[string]string{"a": "b ", "c": "de", "f": "g", "h": "i=j", "k": "", "l": `C:\x`, "m": `abc\`, "n": "A=#", "a2": "2"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %q", err, got)
	}
	if _, err := Properties("a=\\u12"); err == nil {
		t.Error("half an escape is accepted")
	}
}
