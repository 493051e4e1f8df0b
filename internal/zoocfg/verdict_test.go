package zoocfg

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// A verdict is the result of ZooKeeper's own parser for one file. testdata/record.sh
// writes them to the lines of testdata/verdicts.json.
type verdict struct {
	Case       string
	Properties map[string]string // as read by java.util.Properties
	OK         map[string]any    // the fields of QuorumPeerConfig, nil if rejected
	Error      string
	Cause      string // class of the exception
	Message    string
}

func verdicts(t testing.TB) []verdict {
	t.Helper()
	f := must.Get(os.Open("testdata/verdicts.json"))(t)
	defer f.Close()
	var all []verdict
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var v verdict
		must.Do(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	must.Do(t, lines.Err())
	return all
}

// stricter lists files that ZooKeeper accepts and we reject, with the reason.
var stricter = map[string]string{
	"props-wrong-boolean":          "ZooKeeper reads any property that is not true as false: enforceQuota=yes would be off",
	"props-wrong-number":           "ZooKeeper silently takes the default for a property that is no number",
	"props-skipacl-true":           "only yes skips ACLs; the writer of true meant yes and would get no",
	"metrics-port-word":            "ZooKeeper's parser passes it on and its metrics provider then fails the start",
	"enforce-auth-without-schemes": "ZooKeeper's parser accepts it and its server then fails the start",
	"ensemble-id-300-extended":     "ZooKeeper's parser accepts it and its server then fails the start",
	"ensemble-id-negative":         "a server id is the top byte of session ids and a Raft id: it has no sign",
	"ensemble-id-300":              "the id is a byte of every session id: in ZooKeeper server 300 gives out those of server 44",
	"ensemble-myid-negative":       "as ensemble-id-negative",
	"ensemble-init-limit-negative": "a limit of less than no tick can never be met",
	"line-pipe-only":               "ZooKeeper makes a server without any address of it",
	"session-negative":             "only -1 means unset; a timeout below nothing is a slip",
}

// laxer lists files that ZooKeeper rejects and we accept, with the reason.
var laxer = map[string]string{
	"one-letter-datadir":   "ZooKeeper's check for relative paths crashes on names of one letter",
	"line-multi-enabled":   "ZooKeeper looks the key up among the system properties, where a line of the file never puts it",
	"address-unresolvable": "names are resolved by whoever listens, when it does",
	"tick-overflow":        "ZooKeeper's 20 ticks overflow 32 bits",
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, v := range verdicts(t) {
		seen[v.Case] = true
		t.Run(v.Case, func(t *testing.T) {
			t.Parallel()
			c, err := Parse(casePath(v.Case))
			_, strict := stricter[v.Case]
			_, lax := laxer[v.Case]
			switch {
			case v.OK != nil && strict, v.OK == nil && !lax:
				if err == nil {
					t.Fatalf("accepted; ZooKeeper: %s: %s", v.Cause, v.Message)
				}
				checkError(t, v, err)
			case err != nil:
				t.Fatalf("refused: %v", err)
			case v.OK != nil:
				checkFields(t, v, c)
			}
		})
	}
	files, _ := filepath.Glob("testdata/cases/*.cfg")
	if len(files) < 80 || len(files) != len(seen) {
		t.Errorf("%d files, %d verdicts: run testdata/record.sh", len(files), len(seen))
	}
	for _, list := range []map[string]string{stricter, laxer} {
		for name := range list {
			if !seen[name] {
				t.Errorf("the difference %s has no file", name)
			}
		}
	}
}

func casePath(name string) string { return "testdata/cases/" + name + ".cfg" }

// checkError checks that an error names a file and, if ZooKeeper has a specific
// message for the mistake, contains it.
func checkError(t *testing.T, v verdict, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.File == "" {
		t.Fatalf("%v names no file", err)
	}
	if v.Cause == "NumberFormatException" && (e.Line == 0 || e.Key == "" || !strings.Contains(e.Msg, "expected ")) {
		t.Errorf("%v: does not say where and what was expected", err)
	}
	if want := essence(v); !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// essence returns the part of ZooKeeper's message that ours must contain.
func essence(v verdict) string {
	if v.Cause != "ConfigException" && v.Cause != "IllegalArgumentException" {
		return ""
	}
	m := strings.Replace(v.Message, "is in multiple", " is in multiple", 1)
	m = strings.Replace(m, "is not in a group", " is not in a group", 1)
	for _, cut := range []string{" for ", "null:", "/", "null is", " in static"} {
		m, _, _ = strings.Cut(m, cut)
	}
	// We check the tick before the timeouts derived from it.
	if v.Case == "tick-negative" {
		return "tickTime: expected"
	}
	return strings.TrimSuffix(m, ".")
}

func checkFields(t *testing.T, v verdict, c *Config) {
	t.Helper()
	got := fields(t, c)
	for name, want := range v.OK {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s: got %v, ZooKeeper has %v", name, got[name], want)
		}
	}
}

// fields returns the fields that Verdict.java prints.
func fields(t *testing.T, c *Config) map[string]any {
	t.Helper()
	address := func(host string, port int) string {
		switch {
		case port == Unset:
			return ""
		case host == "":
			host = "0.0.0.0"
		}
		return fmt.Sprint(hostString(host), " ", port)
	}
	id := -1
	if c.HasMyID {
		id = int(c.MyID)
	}
	membership := strings.Split(c.Membership.Text(), "\n")
	slices.Sort(membership)
	m := map[string]any{
		"tickTime": c.TickTime.Milliseconds(), "initLimit": c.InitLimit, "syncLimit": c.SyncLimit,
		"minSessionTimeout": c.MinSessionTimeout.Milliseconds(), "maxSessionTimeout": c.MaxSessionTimeout.Milliseconds(),
		"maxClientCnxns": c.MaxClientCnxns, "clientPortListenBacklog": c.ClientPortListenBacklog,
		"dataDir": filepath.ToSlash(c.DataDir), "dataLogDir": c.DataLogDir,
		"clientPort":       address(c.ClientPortAddress, c.ClientPort),
		"secureClientPort": address(c.SecureClientPortAddress, c.SecureClientPort),
		"serverId":         id, "peerType": c.PeerType.String(),
		"snapRetainCount": c.AutopurgeRetain, "purgeInterval": int64(c.AutopurgeInterval / time.Hour),
		"standaloneEnabled": c.StandaloneEnabled, "reconfigEnabled": c.ReconfigEnabled, "distributed": c.Distributed(),
		"quorumListenOnAllIPs": c.QuorumListenOnAllIPs, "localSessionsEnabled": c.LocalSessionsEnabled,
		"localSessionsUpgradingEnabled": c.LocalSessionsUpgradingEnabled, "sslQuorum": c.SSLQuorum,
		"portUnification": c.QuorumPortUnification, "multiAddressEnabled": c.MultiAddressEnabled,
		"metricsProvider":  c.Metrics.ClassName,
		"quorumEnableSasl": c.QuorumAuth.EnableSASL, "quorumServerRequireSasl": c.QuorumAuth.ServerRequire,
		"quorumLearnerRequireSasl": c.QuorumAuth.LearnerRequire, "membership": membership,
	}
	text := must.Get(json.Marshal(m))(t)
	var same map[string]any
	must.Do(t, json.Unmarshal(text, &same))
	return same
}

// TestProperties compares only the syntax: the keys and values of all files must be the same as
// from java.util.Properties.
func TestProperties(t *testing.T) {
	t.Parallel()
	for _, v := range verdicts(t) {
		text := must.Get(os.ReadFile(casePath(v.Case)))(t)
		props, err := properties(string(text))
		if (err != nil) != (v.Properties == nil) {
			t.Errorf("%s: error %v, Java %v", v.Case, err, v.Properties)
			continue
		}
		got := map[string]string{}
		for _, p := range props {
			got[p.key] = p.value
		}
		if err == nil && !reflect.DeepEqual(got, v.Properties) {
			t.Errorf("%s:\ngot  %q\nJava %q", v.Case, got, v.Properties)
		}
	}
}
