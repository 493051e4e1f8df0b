package zoocfg

import (
	"slices"
	"strings"
	"testing"
)

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
		"ssl.keystore.location":      "ssl.keyStore.location",
		"foo":                        "",
		"x":                          "",
		"zookeeper.foo":              "",
		"completely.different.thing": "",
		"connectionMaxTokens":        "connection_throttle_tokens",
		"requestThrottleLimit":       "request_throttle_max_requests",
		"GSSAPI":                     "",
	} {
		c := parse(t, "\n"+key+"=1\n")
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
		{"superUser=caf\xe9\n", "zoo.cfg:2: superUser: has characters outside of ASCII, which are read as ISO-8859-1 as ZooKeeper does: write \\uXXXX"},
		{"authProvider.x=com.example.X\n", "zoo.cfg:2: authProvider.x: the class com.example.X cannot be loaded: clients that authenticate with it will be refused"},
		{"oraclePath=/o\n", "zoo.cfg:2: oraclePath: there is no oracle here: with two servers both are needed for a majority"},
		{"server.1=a:1:2\n", "zoo.cfg: only one server specified: it runs standalone"},
		{ensemble, "zoo.cfg: No server failure will be tolerated. You need at least 3 servers."},
		{ensemble + "server.3=c:1:2\nserver.4=d:1:2\n", "zoo.cfg: Non-optimal configuration, consider an odd number of servers."},
		{ensemble + "server.7=c:1:2\n", "zoo.cfg: My id 1 not in the peer list"},
	} {
		if tc.want == "zoo.cfg: My id 1 not in the peer list" {
			tc.lines = strings.ReplaceAll(tc.lines, "server.1=", "server.5=")
		}
		c := parse(t, tc.lines, WithMyID(1))
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
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
	c := parse(t, "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\npreAllocSize=100\nelectionAlg=3\nmetricsProvider.maxQueueSize=5\n")
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
