package arch

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/zkgo/zkgo"

// rule says what one package may import of this module, and why no more.
type rule struct {
	pkg    string   // path below the module
	allows []string // packages and, with /..., folders
	why    string
}

// rules lists every package that others build on. Test files are free.
var rules = []rule{
	{"proto", nil, "the vocabulary stands on nothing"},
	{"internal/histogram", nil, "every package that counts something imports it"},
	{"internal/transcript", nil, "a test of any package may be a transcript"},
	{"internal/sasl", nil, "an exchange of tokens knows no connection"},
	{"tree", []string{"proto", "tree/internal/..."}, "the tree is pure: no clock, no network, no log"},
	{"tree/internal/acl", []string{"proto"}, "a list allows the same wherever it is checked"},
	{"tree/internal/arena", []string{"proto", "tree/internal/acl"}, "memory knows neither transactions nor the protocol"},
	{"session", []string{"proto"}, "the session table changes only by what the log says"},
	{"watch", []string{"proto"}, "watches know neither the tree nor sockets"},
	{"client", []string{"proto", "internal/sasl"}, "the client must work against any ZooKeeper: nothing of our server"},
	{"recipes", []string{"client"}, "recipes see a client's interface, not the wire"},
	{"internal/recipe", []string{"client", "recipes"}, "what recipes share sees a client's interface, not the wire"},
	{"recipes/lock", []string{"client", "internal/recipe", "recipes"}, "a recipe sees a client's interface, not the wire"},
	{"recipes/barrier", []string{"client", "internal/recipe", "recipes"}, "a recipe sees a client's interface, not the wire"},
	{"recipes/election", []string{"client", "internal/recipe", "recipes", "recipes/lock"}, "a leader holds a lock"},
	{"recipes/cache", []string{"client", "internal/recipe", "recipes"}, "a recipe sees a client's interface, not the wire"},
	{"recipes/config", []string{"client", "internal/recipe", "recipes", "recipes/cache"}, "a configuration is a cached znode"},
	{"recipes/discovery", []string{"client", "internal/recipe", "recipes", "recipes/cache", "recipes/node"}, "services are kept znodes, and are found in a cache"},
	{"recipes/naming", []string{"client", "internal/recipe", "recipes", "recipes/lock"}, "a claimed name is a lock"},
	{"recipes/node", []string{"client", "internal/recipe", "recipes", "recipes/cache"}, "a recipe sees a client's interface, not the wire"},
	{"recipes/partition", []string{"client", "internal/recipe", "recipes", "recipes/lock", "recipes/node"}, "a share is the locks of its items, a party a group of kept znodes"},
	{"recipes/counter", []string{"client", "internal/recipe", "recipes", "recipes/lock"}, "a recipe sees a client's interface, not the wire"},
	{"recipes/queue", []string{"client", "internal/recipe", "recipes", "recipes/election"}, "one of those who shard a queue leads"},
	{"recipes/gozk", []string{"client", "internal/recipe", "recipes"}, "an adapter knows two clients, and no recipe"},
	{"internal/vfs", nil, "a file system knows nothing of what lies on it"},
	{"internal/raftlog", []string{"internal/vfs", "internal/raftlog/engine"}, "stores keep bytes and do not know what they mean"},
	{"internal/raftlog/engine", []string{"internal/vfs"}, "an interface between two packages imports neither"},
	{"raftfsm/boltlog", []string{"internal/vfs", "internal/raftlog/engine"}, "a log store keeps bytes and does not know what they mean"},
	{"internal/quorum", []string{"internal/sasl"}, "the peer network carries streams: it knows who talks, and not what they mean"},
	{"internal/defaults", nil, "defaults are numbers"},
	{"raftfsm/internal/command", []string{"proto", "tree"}, "an entry of the log means the same on every server"},
	{"raftfsm/internal/membership", []string{"proto", "tree"}, "who belongs to the ensemble is decided by pure functions"},
	{"raftfsm/internal/propose", []string{"tree", "raftfsm/internal/command"}, "commands get into the log without a look at the state"},
	{"raftfsm/internal/snapio", nil, "a stream knows nothing of what it carries"},
	{"raftfsm", []string{"proto", "tree", "session", "raftfsm/internal/...", "internal/defaults", "internal/vfs", "internal/raftlog", "internal/raftlog/engine", "internal/quorum", "internal/histogram"}, "the replicated state does not know the client protocol's connections"},
	{"internal/poller", nil, "a poller knows descriptors, and neither a protocol nor a connection"},
	{"internal/limits", nil, "a limit knows neither connections nor requests"},
	{"internal/smallfile", nil, "a bounded read knows nothing of what it reads"},
	{"internal/zoocfg", []string{"internal/defaults", "internal/smallfile"}, "a configuration file is read without a server"},
	{"internal/auth/keystore", []string{"internal/smallfile"}, "certificates are read without a server"},
	{"internal/auth/jaas", []string{"internal/sasl"}, "a file of logins is read without a server"},
	{"internal/auth/tlsport", []string{"proto", "internal/auth/keystore"}, "TLS with clients does not know what they send"},
	{"internal/ops/status", nil, "a picture of a server is data"},
	{"internal/ops/fourletter", []string{"internal/ops/status"}, "texts are made from a picture of the server"},
	{"internal/ops/admin", []string{"internal/ops/status", "internal/ops/fourletter", "internal/zoocfg"}, "answers are made from a picture of the server"},
	{"internal/ops/mntr", []string{"internal/ops/status", "internal/ops/fourletter"}, "lines are made from metrics, however they are counted"},
	{"internal/ops/httpport", []string{"internal/auth/keystore"}, "a port for HTTP does not know what it serves"},
	{"internal/ops/metrics", []string{"internal/ops/status"}, "numbers are read from a picture of the server"},
	{"server", []string{"internal/defaults", "proto", "internal/sasl", "tree", "session", "watch", "raftfsm", "internal/vfs", "internal/raftlog", "internal/raftlog/engine", "internal/quorum", "internal/offline/zkfiles", "internal/offline/backup", "server/...", "internal/auth/...", "internal/limits", "internal/ops/...", "internal/histogram", "internal/poller", "internal/smallfile", "internal/zoocfg"}, "the server stands on the replicated state, never on the client"},
	{"server/zktest", []string{"proto", "tree", "session", "watch", "raftfsm", "internal/vfs", "internal/raftlog", "internal/quorum", "internal/offline/zkfiles", "internal/offline/backup", "server/...", "internal/auth/...", "internal/ops/...", "client", "internal/smallfile", "internal/zoocfg"}, "the test server is the real one, and hands out the client that a test would open itself"},
	{"server/zktest/control", []string{"proto", "server", "server/zktest"}, "an endpoint is a call of zktest, and knows no more"},
	{"internal/offline/zkfiles", []string{"proto", "tree", "session"}, "ZooKeeper's files are read and written without a server"},
	{"internal/offline/migrate", []string{"tree", "session", "raftfsm", "server", "internal/defaults", "internal/vfs", "internal/raftlog", "internal/offline/zkfiles"}, "ZooKeeper's files become the state of a server that is stopped"},
	{"internal/offline/inspect", []string{"proto", "tree", "session", "raftfsm", "raftfsm/boltlog", "internal/raftlog", "internal/offline/zkfiles", "internal/offline/backup"}, "what lies on disks is looked at without a server"},
	{"internal/offline/backup", []string{"proto", "tree", "session", "raftfsm", "internal/vfs", "internal/raftlog", "internal/offline/zkfiles"}, "a backup is taken from outside of a server, and makes the directories of one that does not run"},
	{"internal/offline/container", []string{"internal/zoocfg", "internal/smallfile"}, "a container's files are written before there is a server"},
	{"internal/ops/health", []string{"internal/zoocfg", "internal/auth/keystore"}, "a server is asked from outside"},
	{"internal/ops/audit", []string{"proto", "tree", "raftfsm", "internal/limits"}, "a line of the audit log is made of what was applied"},
	{"internal/cli", []string{"client", "proto", "internal/cli/...", "internal/zoocfg"}, "the command line must work against any ZooKeeper: of our server, only the parser of its files"},
	{"internal/cli/diagnose", []string{"client"}, "the cause of a failed connection is found from outside, with any ZooKeeper"},
	{"internal/cli/terminal", nil, "a terminal knows no ensemble"},
	{"internal/cli/overview", nil, "asking servers how they are takes a socket"},
	{"internal/cli/subtree", []string{"client", "proto"}, "copying and comparing trees takes a client, of any ZooKeeper"},
	{"internal/bench", []string{"proto"}, "the load generator must measure any ZooKeeper: nothing of our server or client"},
	{"cmd/zkgo", []string{"internal/bench", "internal/cli", "internal/cli/...", "server", "server/...", "internal/auth/...", "internal/ops/...", "raftfsm", "raftfsm/boltlog", "internal/vfs", "internal/raftlog", "internal/quorum", "internal/offline/...", "client", "recipes", "proto", "internal/smallfile", "internal/zoocfg"}, "the command is flags and terminal only"},
}

// libraries says which packages may import which library families.
var libraries = map[string][]string{
	"github.com/hashicorp/raft":       {"raftfsm", "raftfsm/internal/membership", "raftfsm/internal/propose", "raftfsm/boltlog", "internal/raftlog", "internal/raftlog/engine", "internal/quorum"},
	"github.com/go-zookeeper":         {"recipes/gozk"},
	"go.etcd.io/bbolt":                {"raftfsm/boltlog"},
	"github.com/hashicorp/go-msgpack": {"raftfsm/boltlog"},
	"github.com/spf13/cobra":          {"cmd/zkgo"},
	"golang.org/x/term":               {"internal/cli", "cmd/zkgo"},
	"github.com/coreos/go-systemd":    {"cmd/zkgo"},
	"github.com/HdrHistogram":         {"internal/bench"},
	"golang.org/x/sync":               {"internal/bench"},
	"github.com/prometheus":           {"internal/ops/metrics"},
	"github.com/pavlo-v-chernykh":     {"internal/auth/keystore"},
	"software.sslmate.com/src":        {"internal/auth/keystore"},
	"go.yaml.in/yaml":                 {"server/zktest", "internal/cli/subtree"},
	"github.com/youmark":              {"internal/auth/keystore"},
	"golang.org/x/crypto":             {"internal/auth/keystore"},
	"github.com/klauspost/compress":   {"internal/offline/zkfiles"},
	"github.com/schollz/progressbar":  {"cmd/zkgo", "internal/cli"},
}

// unsafeFiles lists the files that may import unsafe, and what it serves.
var unsafeFiles = map[string]string{
	"internal/poller/epoll_linux.go":       "a system call takes a pointer",
	"internal/poller/socket_linux.go":      "a system call takes a pointer",
	"internal/vfs/blocks.go":               "direct writes need aligned memory",
	"proto/jute.go":                        "texts of a request alias its frame",
	"server/slowreader_linux.go":           "a system call takes a pointer",
	"tests/safety/chaos/fulldisk_linux.go": "a system call takes a pointer",
	"tree/internal/arena/text.go":          "a znode's path and data share one allocation",
}

// TestUnsafe checks that only the listed files import unsafe. Test files may, for the sizes
// of types.
func TestUnsafe(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, f := range sources(t) {
		if used[f.path] = slices.Contains(f.imports, "unsafe"); used[f.path] && !f.test && unsafeFiles[f.path] == "" {
			t.Errorf("%s imports unsafe", f.path)
		}
	}
	for path, why := range unsafeFiles {
		if !used[path] {
			t.Errorf("%s needs no exception any more (%s)", path, why)
		}
	}
}

func TestImportDirection(t *testing.T) {
	t.Parallel()
	files := sources(t)
	for _, f := range files {
		if f.test {
			continue
		}
		for _, imp := range f.imports {
			checkInternal(t, f, imp)
			checkLibrary(t, f, imp)
		}
	}
}

// groups are the folders of tests. A suite builds on its own group and on the kit, and
// the kit on the API: not on what a suite is about, and on nothing internal.
var groups = map[string][]string{
	"kit":    {"proto", "tree", "raftfsm", "server", "server/zktest", "client", "recipes", "tests/kit/..."},
	"compat": {"tests/kit/...", "tests/compat/..."},
	"safety": {"tests/kit/...", "tests/safety/..."},
	"perf":   {"tests/kit/...", "tests/perf/..."},
	"arch":   nil,
}

// TestGroupsOfTests checks the imports between the folders of tests, also those of test
// files, and those of the kit.
func TestGroupsOfTests(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		within, is := strings.CutPrefix(f.pkg, "tests/")
		if !is {
			continue
		}
		group, _, _ := strings.Cut(within, "/")
		allows, known := groups[group]
		if !known {
			t.Errorf("%s is in none of the groups of tests", f.path)
		}
		for _, imp := range f.imports {
			path, ours := strings.CutPrefix(imp, module+"/")
			if ours && (strings.HasPrefix(path, "tests/") || group == "kit" && !f.test) && !matches(allows, path) {
				t.Errorf("%s imports %s, which %s may not", f.path, path, group)
			}
		}
	}
}

// TestOnlyTheKitStartsServers: a process that has to die with its test takes a thread
// that is kept for it, which is easy to get wrong and was written six times.
func TestOnlyTheKitStartsServers(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if f.threads && strings.HasPrefix(f.pkg, "tests/") && !strings.HasPrefix(f.pkg, "tests/kit/") {
			t.Errorf("%s keeps a thread: tests/kit/process starts processes", f.path)
		}
	}
}

// TestEveryPackageHasARule: a package that the table does not know could import anything.
func TestEveryPackageHasARule(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, r := range rules {
		known[r.pkg] = true
	}
	for _, f := range sources(t) {
		if !known[f.pkg] && !strings.HasPrefix(f.pkg, "tests/") && !strings.HasPrefix(f.pkg, "deploy/") {
			t.Errorf("%s: package %s has no rule", f.path, f.pkg)
			known[f.pkg] = true
		}
	}
}

// checkInternal checks one import of this module against the rules.
func checkInternal(t *testing.T, f file, imp string) {
	t.Helper()
	path, ours := strings.CutPrefix(imp, module+"/")
	if !ours {
		return
	}
	if strings.HasPrefix(path, "cmd/") || strings.HasPrefix(path, "tests/") && !strings.HasPrefix(f.pkg, "tests/") {
		t.Errorf("%s imports %s: nothing imports commands and tests", f.path, path)
	}
	for _, r := range rules {
		if f.pkg == r.pkg && !matches(r.allows, path) {
			t.Errorf("%s imports %s: %s", f.path, path, r.why)
		}
	}
}

// TestOnlyTestsImportTesting: the shipped program contains the test server, but must
// not link package testing, which would add its flags.
func TestOnlyTestsImportTesting(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if f.test || strings.HasPrefix(f.pkg, "tests/") {
			continue
		}
		for _, imp := range f.imports {
			if imp == "testing" || strings.HasPrefix(imp, "testing/") {
				t.Errorf("%s imports %s", f.path, imp)
			}
		}
	}
}

// matches reports whether path is in the list.
func matches(list []string, path string) bool {
	for _, a := range list {
		if dir, ok := strings.CutSuffix(a, "/..."); ok && strings.HasPrefix(path, dir) || a == path {
			return true
		}
	}
	return false
}

// checkLibrary keeps each library where it belongs.
func checkLibrary(t *testing.T, f file, imp string) {
	t.Helper()
	if strings.HasPrefix(f.pkg, "tests/") {
		return
	}
	for lib, allowed := range libraries {
		if imp != lib && !strings.HasPrefix(imp, lib+"/") {
			continue
		}
		if !matches(allowed, f.pkg) {
			t.Errorf("%s imports %s, which only %s may know", f.path, imp, strings.Join(allowed, ", "))
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	doc := map[string]bool{}
	for _, f := range sources(t) {
		if !f.test {
			doc[f.pkg] = doc[f.pkg] || f.doc
		}
	}
	if len(doc) < 8 {
		t.Fatalf("only %d packages found: this test does not see the module", len(doc))
	}
	for pkg, has := range doc {
		if !has {
			t.Errorf("package %s has no doc comment", pkg)
		}
	}
}
