package zoocfg

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// reachable is parse for a server that clients can reach, so that no warning says otherwise.
func reachable(t *testing.T, extra string, opts ...Option) *Config {
	t.Helper()
	return parse(t, extra, append(opts, WithSet("clientPort", "2181"))...)
}

// TestNoClientPort: a server that no client can reach is valid, as in ZooKeeper, but every
// command should warn about it.
func TestNoClientPort(t *testing.T) {
	t.Parallel()
	const three = "initLimit=1\nsyncLimit=1\nserver.1=a:1:2\nserver.2=b:1:2;3\nserver.3=c:1:2\n"
	for lines, reached := range map[string]bool{
		"": false, "clientPort=0\n": true, "secureClientPort=1\n": true, "clientport=1\n": false,
		three: false, strings.Replace(three, "a:1:2", "a:1:2;3", 1): true, three + "clientPort=3\n": true,
	} {
		c := parse(t, lines, WithMyID(1))
		warned := slices.ContainsFunc(c.Warnings, func(w Warning) bool { return strings.Contains(w.Msg, "no client can connect to this server") })
		if warned == reached {
			t.Errorf("%q: %v", lines, c.Warnings)
		}
	}
	if _, err := ParseText("zoo.cfg", "dataDir=/data\nclientPort=x\n", WithReadFile(noFiles)); strings.Contains(err.Error(), "no client can connect") {
		t.Errorf("a wrong port: %v", err)
	}
}

func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	for key, nearest := range map[string]string{
		"ticktime":                   "tickTime",
		"maxClientCnxs":              "maxClientCnxns",
		"clientport":                 "clientPort",
		"snapRetainCount":            "autopurge.snapRetainCount",
		"zookeeper.skipACL":          "skipACL",
		"zookeeper.authProvider.1":   "authProvider.1",
		"4lw.command.whitelist":      "4lw.commands.whitelist",
		"Sever.1":                    "server.1",
		"server1":                    "server.1",
		"server_12":                  "server.12",
		"ssl.keystore.location":      "ssl.keyStore.location",
		"foo":                        "",
		"x":                          "",
		"zookeeper.foo":              "",
		"completely.different.thing": "",
		"connectionMaxTokens":        "connection_throttle_tokens",
		"requestThrottleLimit":       "request_throttle_max_requests",
		"GSSAPI":                     "",
	} {
		c := reachable(t, "\n"+key+"=1\n")
		if len(c.Warnings) != 1 {
			t.Errorf("%s: %v", key, c.Warnings)
			continue
		}
		w := c.Warnings[0]
		if w.File != "zoo.cfg" || w.Line != 3 || w.Key != key || w.Nearest != nearest || !strings.HasPrefix(w.String(), "zoo.cfg:3: "+key+": ") {
			t.Errorf("%s: %+v", key, w)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const ensemble = "initLimit=1\nsyncLimit=1\nserver.1=a:1:2\nserver.2=b:1:2\n"
	for _, tc := range []struct{ lines, want string }{
		{"clientPort=1\ntickTime=7\nclientPort=2\n", "zoo.cfg:2: clientPort: has no effect, line 4 sets the key again"},
		{"dataLogDir=log\n", "zoo.cfg:2: dataLogDir: log is relative. Prepend ./ to indicate that you're sure!"},
		{"peerType=observer\n", "zoo.cfg:2: peerType: Peer type from servers list (participant) doesn't match peerType (observer). Defaulting to servers list."},
		{"autopurge.snapRetainCount=1\n", "zoo.cfg:2: autopurge.snapRetainCount: Invalid autopurge.snapRetainCount: 1. Defaulting to 3"},
		{"superUser=caf\xe9\n", "zoo.cfg:2: superUser: has characters outside of ASCII, which are read as ISO-8859-1, as in ZooKeeper: write \\uXXXX"},
		{"dataLogDir=/data\\logs\n", `zoo.cfg:2: dataLogDir: a \ is an escape character and was dropped: the value is /datalogs; write \\ or /`},
		{"dataLogDir=/log # fast\n", `zoo.cfg:2: dataLogDir: the value is "/log # fast": a comment must be on a separate line`},
		{"authProvider.x=com.example.X\n", "zoo.cfg:2: authProvider.x: the class com.example.X cannot be loaded: clients that use it will be refused"},
		{"oraclePath=/o\n", "zoo.cfg:2: oraclePath: oracles are not supported: with two servers, both are needed for a majority"},
		{"server.1=a:1:2\n", "zoo.cfg: only one server specified: it runs standalone"},
		{ensemble, "zoo.cfg: No server failure will be tolerated. You need at least 3 servers."},
		{ensemble + "server.3=c:1:2\nserver.4=d:1:2\n", "zoo.cfg: Non-optimal configuration, consider an odd number of servers."},
		{ensemble + "server.7=c:1:2\n", "zoo.cfg: My id 1 not in the peer list"},
	} {
		if tc.want == "zoo.cfg: My id 1 not in the peer list" {
			tc.lines = strings.ReplaceAll(tc.lines, "server.1=", "server.5=")
		}
		c := reachable(t, tc.lines, WithMyID(1))
		must.Do(t, c.Validate())
		if len(c.Warnings) != 1 || c.Warnings[0].String() != tc.want {
			t.Errorf("got  %v\nwant %s", c.Warnings, tc.want)
		}
	}
}

func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	c, err := ParseText("zoo.cfg", "\xef\xbb\xbftickTime=500\ndataDir=/data\n", WithReadFile(noFiles))
	if err != nil || c.TickTime != defaultTick {
		t.Fatalf("%+v, %v", c, err)
	}
	if w := c.Warnings[0]; w.Nearest != "tickTime" || !strings.Contains(w.Msg, "byte order mark") {
		t.Errorf("got %v", c.Warnings)
	}
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	c := reachable(t, "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\npreAllocSize=100\nelectionAlg=3\nmetricsProvider.maxQueueSize=5\n")
	want := []string{"serverCnxnFactory", "preAllocSize", "electionAlg", "metricsProvider.maxQueueSize"}
	if !slices.Equal(c.Ignored, want) || len(c.Warnings) != 0 {
		t.Errorf("got %v, %v", c.Ignored, c.Warnings)
	}
	if err := c.Set("preAllocSize", "1"); err != nil || len(c.Ignored) != 4 {
		t.Errorf("%v, %v", c.Ignored, err)
	}
}

func TestHierarchicalQuorums(t *testing.T) {
	t.Parallel()
	const servers = "initLimit=1\nsyncLimit=1\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"
	for lines, supported := range map[string]bool{
		"":                            true,
		"group.1=1:2:3\n":             true,
		"group.1=1:2:3\nweight.1=1\n": true,
		"group.1=1:2:3\nweight.1=2\n": false,
		"group.1=1:2:3\nweight.3=0\n": false,
		"group.1=1:2:3\nweight.1=1\nweight.2=1\nweight.3=1\n": true,
		"group.1=1:2:3\nweight.1=7\nweight.2=7\nweight.3=7\n": true,
		"group.1=1:2\ngroup.2=3\n":                            false,
		"group.1=1:2:3:9\nweight.9=1\n":                       false,
		"group.1=1:2:3\nweight.1=0\nweight.2=0\nweight.3=0\n": false,
	} {
		c := parse(t, servers+lines, WithMyID(1))
		if (c.HierarchicalQuorums == "") != supported {
			t.Errorf("%q: %q", lines, c.HierarchicalQuorums)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*Error{
		"zoo.cfg:3: k: m": {File: "zoo.cfg", Line: 3, Key: "k", Msg: "m"},
		"zoo.cfg: m":      {File: "zoo.cfg", Msg: "m"},
		"line 3: m":       {Line: 3, Msg: "m"},
		"k: m":            {Key: "k", Msg: "m"},
	} {
		if e.Error() != want {
			t.Errorf("got %s, want %s", e, want)
		}
	}
}

// TestRefusedHasWarnings checks that an error comes with the warning that explains it.
func TestRefusedHasWarnings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"datadir=/x\n":             "zoo.cfg: dataDir: dataDir is not set: expected the directory for snapshots and log\nwarning: zoo.cfg:1: datadir: unknown key, did you mean dataDir?",
		"\xef\xbb\xbfdataDir=/x\n": "byte order mark",
	} {
		_, err := ParseText("zoo.cfg", text, WithReadFile(noFiles))
		var r *Refused
		var e *Error
		if !errors.As(err, &r) || !errors.As(err, &e) || e.Key != "dataDir" || len(r.Warnings) == 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	c := reachable(t, "unheard=1\n")
	c.DataDir = ""
	var r *Refused
	if err := c.Validate(); !errors.As(err, &r) || len(r.Warnings) != 1 {
		t.Errorf("Validate: %v", err)
	}
}

func TestByteOrderMarkOfOtherFiles(t *testing.T) {
	t.Parallel()
	const text = "dataDir=/data\ninitLimit=1\nsyncLimit=1\ndynamicConfigFile=/dyn\n"
	for name, files := range map[string]map[string]string{
		"dyn":  {"/dyn": "\xef\xbb\xbfserver.1=a:1:2\nserver.2=b:1:2\n", "/data/myid": "1\n"},
		"myid": {"/dyn": "server.1=a:1:2\nserver.2=b:1:2\n", "/data/myid": "\xef\xbb\xbf1\n"},
	} {
		_, err := ParseText("zoo.cfg", text, WithReadFile(func(path string) ([]byte, error) {
			if content, ok := files[filepath.ToSlash(path)]; ok {
				return []byte(content), nil
			}
			return noFiles(path)
		}))
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "byte order mark") || !strings.Contains(err.Error(), `\ufeff`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnusedValues checks that a value without an effect doesn't keep a server from
// starting.
func TestUnusedValues(t *testing.T) {
	t.Parallel()
	for line, warned := range map[string]bool{
		"forceSync=false": true, "forceSync=no": false, "snapshot.trust.empty=yes": true, "db.autocreate=no": true, "fips-mode=no": true,
		"fsync.warningthresholdms=-1": false, "fsync.warningthresholdms=soon": true, "jute.maxbuffer.extrasize=-1": false,
		"request_stale_connection_check=no": true,
	} {
		c := reachable(t, line+"\n")
		key, _, _ := strings.Cut(line, "=")
		if warned != (len(c.Warnings) == 1 && c.Warnings[0].Key == key && c.Warnings[0].Line == 2) || len(c.Warnings) > 1 {
			t.Errorf("%s: %v", line, c.Warnings)
		}
	}
}

// TestReplacedNumbers checks numbers that ZooKeeper replaces.
func TestReplacedNumbers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		line   string
		value  func(c *Config) any
		want   any
		warned bool
	}{
		{"maxCnxns=-1", func(c *Config) any { return c.MaxCnxns }, 0, true},
		{"maxCnxns=7", func(c *Config) any { return c.MaxCnxns }, 7, false},
		{"snapCount=0", func(c *Config) any { return c.SnapCount }, 2, true},
		{"request_throttle_max_requests=-1", func(c *Config) any { return c.RequestThrottle.MaxRequests }, 0, false},
		{"throttled_op_wait_time=-1", func(c *Config) any { return c.RequestThrottle.OpWaitTime }, time.Duration(0), false},
		{"ssl.handshakeDetectionTimeoutMillis=0", func(c *Config) any { return c.TLS.HandshakeDetectionTimeout }, 5 * time.Second, true},
	} {
		c := reachable(t, tc.line+"\n")
		if got := tc.value(c); got != tc.want || (len(c.Warnings) > 0) != tc.warned {
			t.Errorf("%s: %v, %v", tc.line, got, c.Warnings)
		}
	}
}

// TestListenAddresses checks that all addresses accept the brackets of IPv6.
func TestListenAddresses(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"[::1]": "::1", "[::]": "::", "::1": "::1", "": "", "host": "host", "10.0.0.1": "10.0.0.1"} {
		c := parse(t, "admin.serverAddress="+value+"\nmetricsProvider.httpHost="+value+"\n")
		if c.Admin.Address != want || c.Metrics.HTTPHost != want {
			t.Errorf("%q: %q and %q, want %q", value, c.Admin.Address, c.Metrics.HTTPHost, want)
		}
	}
	for _, key := range []string{"admin.serverAddress", "metricsProvider.httpHost"} {
		if _, err := ParseText("zoo.cfg", "dataDir=/data\n"+key+"=[::1\n", WithReadFile(noFiles)); err == nil {
			t.Errorf("%s=[::1 is accepted", key)
		}
	}
}

// TestSameMember checks that two spellings of one id aren't one server silently.
func TestSameMember(t *testing.T) {
	t.Parallel()
	const limits = "dataDir=/data\ninitLimit=1\nsyncLimit=1\n"
	for _, lines := range []string{
		"server.01=a:1:2\nserver.1=b:1:2\n", "server.1=a:1:2\nserver.001=b:1:2\n",
		"server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2\ngroup.01=1:2\n", "server.1=a:1:2\nserver.2=b:1:2\nweight.1=1\nweight.+1=1\n",
	} {
		for _, text := range []string{limits + lines, limits + "dynamicConfigFile=/dyn\n"} {
			_, err := ParseText("zoo.cfg", text, WithMyID(1), WithReadFile(func(string) ([]byte, error) { return []byte(lines), nil }))
			if err == nil || !strings.Contains(err.Error(), "has the same number 1") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	c := parse(t, "initLimit=1\nsyncLimit=1\nserver.01=a:1:2\nserver.2=b:1:2\n", WithMyID(1), WithSet("server.2", "c:1:2"))
	if s, ok := c.Server(2); !ok || s.Addrs[0].Host != "c" {
		t.Errorf("--set of a server of the file: %+v", s)
	}
}

// A value that a comment follows is part of the value in a properties file. The error should
// say so.
func TestCommentAfterValue(t *testing.T) {
	t.Parallel()
	_, err := ParseText("zoo.cfg", "dataDir=/data\nclientPort=2181 # the port\n", WithReadFile(noFiles))
	if err == nil || !strings.Contains(err.Error(), noComment) {
		t.Errorf("got %v", err)
	}
}
