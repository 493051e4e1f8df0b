package zoocfg

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// Every value is shown in the form of the file: setting it again changes nothing.
func TestShownValuesAreValid(t *testing.T) {
	t.Parallel()
	c := parse(t, strings.Join([]string{
		"admin.rateLimiterIntervalInMS=77", "clientPort=2181", "forceSync=no", "skipACL=yes", "tickTime=500", "peerType=participant", "autopurge.purgeInterval=3",
		"4lw.commands.whitelist=ruok,mntr", "memoryCeiling=1g", "connection_throttle_drop_increase=0.125", "ssl.clientAuth=want",
		"ssl.enabledProtocols=TLSv1.2,TLSv1.3", "admin.serverPort=9", "minSessionTimeout=700", "ensembleAuthName=a,b",
		"secureClientPortAddress=127.0.0.1", "secureClientPort=2182",
	}, "\n"))
	seen := map[string]bool{}
	for _, s := range c.Settings() {
		seen[s.Key] = true
		k := knownKeys[s.Key]
		if s.Value == "" || s.Value == "-1" || s.Value == hidden || s.Origin == byDefault && strings.HasPrefix(s.Key, "secure") {
			continue // equivalent to a missing line
		}
		again := c.Clone()
		if err := k.set.set(again, s.Value); err != nil || differs(again, c) {
			t.Errorf("%s=%s: %v, changes something: %v", s.Key, s.Value, err, differs(again, c))
		}
	}
	for _, k := range keyTable() {
		if !k.ignored && !seen[k.name] {
			t.Errorf("%s is not shown", k.name)
		}
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	const text = "dataDir=/data\nclientPort=2181\ninitLimit=5\nsyncLimit=2\n" +
		"ssl.keyStore.password=secret\nDigestAuthenticationProvider.superDigest=super:x=\n" +
		"server.1=a:1:2;2181\nserver.2=b:1:2;2181\nserver.3=c:1:2:observer;2181\nserver.4=d:1:2;2181\nweight.1=1\ngroup.1=1:2:4\n"
	c := must.Get(ParseText("zoo.cfg", text, WithMyID(2), WithReadFile(noFiles), WithSet("snapCount", "7")))(t)
	got := map[string]string{}
	for _, s := range c.Settings() {
		if s.Words == "" {
			t.Errorf("%s has no words", s.Key)
		}
		if s.Set() {
			got[s.Key] = s.Value + " " + s.Origin
		}
	}
	want := map[string]string{
		"dataDir": "/data zoo.cfg:1", "initLimit": "5 zoo.cfg:3", "syncLimit": "2 zoo.cfg:4", "snapCount": "7 --set",
		"clientPort": "2181 zoo.cfg:8", "clientPortAddress": "0.0.0.0 zoo.cfg:8", "peerType": "participant zoo.cfg:8",
		"ssl.keyStore.password": hidden + " zoo.cfg:5", "DigestAuthenticationProvider.superDigest": hidden + " zoo.cfg:6", "myid": "2 given",
		"server.1": "a:1:2:participant;0.0.0.0:2181 zoo.cfg:7", "server.2": "b:1:2:participant;0.0.0.0:2181 zoo.cfg:8",
		"server.3": "c:1:2:observer;0.0.0.0:2181 zoo.cfg:9", "server.4": "d:1:2:participant;0.0.0.0:2181 zoo.cfg:10",
		"weight.1": "1 zoo.cfg:11", "group.1": "1:2:4 zoo.cfg:12",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const text = "dataDir=/data\nclientPort=2181\ninitLimit=5\nsyncLimit=2\ntickTime=2000\npreAllocSize=100\ntckTime=1\n" +
		"server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer\nfips-mode=false\nmetricsProvider.maxQueueSize=5\n"
	c := must.Get(ParseText("zoo.cfg", text, WithMyID(2), WithReadFile(noFiles)))(t)
	k := c.Check()
	keys := func(list []Setting) (names []string) {
		for _, s := range list {
			names = append(names, s.Key)
		}
		return names
	}
	if got := keys(k.Settings); !slices.Equal(got, []string{"dataDir", "clientPort", "initLimit", "syncLimit", "tickTime",
		"server.1", "server.2", "server.3", "server.4", "myid"}) {
		t.Errorf("set: %v", got)
	}
	if got := keys(k.Ignored); !slices.Equal(got, []string{"preAllocSize", "fips-mode", "metricsProvider.maxQueueSize"}) || k.Ignored[0].Value != "100" {
		t.Errorf("ignored: %+v", k.Ignored)
	}
	if len(k.Warnings) != 1 || k.Warnings[0] != "zoo.cfg:7: tckTime: unknown key, did you mean tickTime?" {
		t.Errorf("warnings: %q", k.Warnings)
	}
	var b strings.Builder
	must.Get(k.WriteTo(&b))(t)
	for _, want := range []string{
		"A server of an ensemble of 3 voters and 1 observer; it needs 2 running voters, so it tolerates the loss of 1. This one is server 2, a participant",
		"Clients connect to port 2181 of every address without TLS, at most 60 from one address and any number in all.",
		"zoo.cfg:6", "files of the log are 32 MiB", "Warnings:\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if _, err := json.Marshal(k); err != nil {
		t.Error(err)
	}
	for lines, want := range map[string]string{
		"":                              "in plaintext.\n",
		"quorum.auth.enableSasl=true\n": "This one accepts servers with and without SASL, and does not use SASL when it connects to others.",
		"quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\n":                                     "This one uses SASL when it connects to other servers, and accepts servers without SASL.",
		"quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\n": "servers without SASL are rejected.",
	} {
		c := must.Get(ParseText("zoo.cfg", text+lines, WithMyID(2), WithReadFile(noFiles)))(t)
		k := c.Check()
		if words := strings.Join(k.Summary, "\n") + "\n"; !strings.Contains(words, want) || len(k.Ignored) != 3 {
			t.Errorf("%q: no %q in\n%s", lines, want, words)
		}
	}
	alone := parse(t, "skipACL=yes\nsessionRequireClientSASLAuth=true\nadmin.enableServer=false\n")
	words := strings.Join(alone.Check().Summary, "\n")
	for _, want := range []string{"standalone", "No client can connect", "AdminServer: off", "every client may do everything", "must authenticate"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, words)
		}
	}
}
