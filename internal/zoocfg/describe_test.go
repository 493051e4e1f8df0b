package zoocfg

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// rewrite updates docs/operate/compatibility.md from keys.txt.
var rewrite = flag.Bool("rewrite", false, "write the table of keys into docs/operate/compatibility.md")

// All keys that ZooKeeper 3.9.5 reads, according to testdata/keys.sh, and all keys of
// the table have descriptions, and no others. The descriptions agree with the table.
func TestEveryKeyIsDescribed(t *testing.T) {
	t.Parallel()
	described := map[string]Verdict{}
	for _, d := range Descriptions() {
		if _, twice := described[d.Key]; twice {
			t.Errorf("%s is described twice", d.Key)
		}
		described[d.Key] = d.Verdict
		if d.Words == "" || d.Section == "" {
			t.Errorf("%+v", d)
		}
	}
	text := must.Get(os.ReadFile(filepath.Join("testdata", "zookeeper-3.9.5-keys.txt")))(t)
	official := map[string]bool{}
	for _, key := range strings.Fields(string(text)) {
		official[key] = true
		if v, ok := described[key]; !ok || v == Ours {
			t.Errorf("ZooKeeper's %s: %q", key, v)
		}
	}
	if len(official) < 250 {
		t.Errorf("ZooKeeper has more than %d keys", len(official))
	}
	// Keys that are read and validated but have no effect.
	idle := map[string]bool{
		"clientPortListenBacklog": true, "jute.maxbuffer.extrasize": true, "fsync.warningthresholdms": true, "fips-mode": true,
		"admin.restore.enabled":                 true,
		"multiAddress.reachabilityCheckEnabled": true, "multiAddress.reachabilityCheckTimeoutMs": true,
	}
	for _, k := range keyTable() {
		v, ok := described[k.name]
		if !ok {
			t.Errorf("%s is not described in keys.txt", k.name)
			continue
		}
		without := v == Meaningless || v != Same && v != Ours && k.ignored
		if k.ignored != without && !idle[k.name] {
			t.Errorf("%s is %s, but ignored: %v", k.name, v, k.ignored)
		}
	}
	for key, v := range described {
		switch v {
		case Same, Better, Meaningless, Missing, Ours:
		default:
			t.Errorf("%s: %q is no verdict", key, v)
		}
		name := strings.TrimSuffix(key, "N") + "1"
		if _, known := knownKeys[key]; !known && !isMember(name) && !strings.HasPrefix(key, authProviderPrefix) && key != "version" && key != "oraclePath" {
			t.Errorf("%s is described, but unknown", key)
		}
	}
}

// The table in docs/operate/compatibility.md matches keys.txt. -rewrite updates it.
func TestTheDocumentHasTheTable(t *testing.T) {
	t.Parallel()
	const title, next = "## zoo.cfg\n", "\n## "
	name := filepath.Join("..", "..", "docs", "operate", "compatibility.md")
	text := must.Get(os.ReadFile(name))(t)
	before, rest, ok := strings.Cut(string(text), title)
	if !ok {
		t.Fatalf("%s has no %s", name, title)
	}
	// The section begins with prose; the table begins with ###.
	at := strings.Index(rest, next)
	section, after := rest[:at], rest[at:]
	intro, _, _ := strings.Cut(section, "\n### ")
	want := before + title + strings.TrimRight(intro, "\n") + "\n" + Table() + after
	if want == string(text) {
		return
	}
	if !*rewrite {
		t.Errorf("%s differs from keys.txt: run go test ./internal/zoocfg -run TheDocument -rewrite", name)
		return
	}
	must.Do(t, os.WriteFile(name, []byte(want), 0o644))
}
