package arch

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/zkgo/zkgo"

// rule lists the packages of this module that one package may import, with the reason.
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
	{"internal/vfs", []string{"storage"}, "a file system knows nothing of what lies on it"},
	{"internal/raftlog", []string{"internal/vfs", "storage"}, "stores keep bytes and do not know what they mean"},
	{"storage", nil, "interfaces between a server and what keeps its bytes import neither"},
	{"raftfsm/boltlog", []string{"internal/vfs", "storage"}, "a log store keeps bytes and does not know what they mean"},
	{"internal/quorum", []string{"internal/sasl"}, "the peer network carries streams: it knows which server talks, and not what it means"},
	{"internal/quorum/rpc", nil, "a message is decoded and checked without a connection"},
	{"internal/quorum/transport", []string{"internal/quorum", "internal/quorum/rpc"}, "Raft's messages travel over the streams of the peer network"},
	{"internal/defaults", nil, "defaults are numbers"},
	{"raftfsm/internal/command", []string{"proto", "tree", "session"}, "an entry of the log means the same on every server"},
	{"raftfsm/internal/membership", []string{"proto", "tree"}, "who belongs to the ensemble is decided by pure functions"},
	{"raftfsm/internal/exchange", []string{"internal/quorum"}, "a question is carried without a look at it"},
	{"raftfsm/internal/bootstrap", []string{"internal/quorum", "internal/vfs", "raftfsm/internal/membership", "raftfsm/internal/exchange"}, "an ensemble forms before there is a state"},
	{"raftfsm/internal/multiaddr", []string{"internal/quorum"}, "a dial knows addresses, and not whose they are"},
	{"raftfsm/internal/datadir", []string{"internal/vfs", "internal/raftlog", "raftfsm/internal/bootstrap", "raftfsm/internal/command", "raftfsm/internal/membership"}, "whose state a directory holds is known without the state"},
	{"raftfsm/internal/propose", []string{"tree", "raftfsm/internal/command"}, "commands get into the log without a look at the state"},
	{"raftfsm/internal/apply", []string{"proto", "tree", "session", "internal/mirrored", "internal/zktxn", "raftfsm/internal/command", "raftfsm/internal/membership", "raftfsm/internal/propose", "raftfsm/internal/snapio", "internal/histogram"}, "the state is a function of the log: no configuration, no files, no other server"},
	{"raftfsm/internal/forward", []string{"internal/quorum", "raftfsm/internal/propose"}, "a stream of runs knows neither the log nor the ensemble"},
	{"raftfsm/internal/ensemble", []string{"proto", "tree", "session", "internal/histogram", "internal/quorum", "internal/quorum/transport", "internal/raftlog", "raftfsm/internal/apply", "raftfsm/internal/bootstrap", "raftfsm/internal/command", "raftfsm/internal/datadir", "raftfsm/internal/exchange", "raftfsm/internal/forward", "raftfsm/internal/membership", "raftfsm/internal/multiaddr", "raftfsm/internal/propose"}, "an ensemble knows its server by an environment, never the Node"},
	{"raftfsm/internal/logreader", []string{"proto", "tree", "session", "storage", "internal/raftlog", "raftfsm/internal/apply", "raftfsm/internal/command", "raftfsm/internal/datadir", "raftfsm/internal/membership"}, "the files of a server are read without the server"},
	{"raftfsm/internal/replica", []string{"tree", "session", "storage", "internal/histogram", "internal/raftlog", "raftfsm/internal/apply", "raftfsm/internal/command", "raftfsm/internal/datadir", "raftfsm/internal/membership", "raftfsm/internal/propose"}, "a copy of the state is opened, kept and replaced without another server"},
	{"raftfsm/internal/restore", []string{"proto", "tree", "session", "raftfsm/internal/apply", "raftfsm/internal/command", "raftfsm/internal/propose"}, "a new state comes through the log like any other command"},
	{"raftfsm/internal/snapio", nil, "a stream knows nothing of what it carries"},
	{"raftfsm", []string{"internal/mirrored", "proto", "tree", "session", "raftfsm/internal/...", "internal/defaults", "internal/vfs", "internal/raftlog", "storage", "internal/quorum", "internal/quorum/transport", "internal/histogram"}, "the replicated state does not know the client protocol's connections"},
	{"internal/buffer", nil, "bytes do not say what they are for"},
	{"internal/pipe", nil, "a connection does not know what it carries"},
	{"internal/version", nil, "a program knows its version without a server"},
	{"internal/poller", nil, "a poller knows descriptors, and neither a protocol nor a connection"},
	{"internal/limits", nil, "a limit knows neither connections nor requests"},
	{"internal/smallfile", nil, "a bounded read knows nothing of what it reads"},
	{"internal/spelling", nil, "words are compared without a list of them"},
	{"internal/zoocfg", []string{"internal/defaults", "internal/smallfile", "internal/spelling"}, "a configuration file is read without a server"},
	{"internal/auth/certs", nil, "a certificate is explained without the file it came from"},
	{"internal/auth/keystore", []string{"internal/auth/certs", "internal/smallfile"}, "certificates are read without a server"},
	{"internal/auth/jaas", []string{"internal/sasl"}, "a file of logins is read without a server"},
	{"internal/auth/tlsport", []string{"proto", "internal/auth/certs"}, "TLS with clients does not know what they send"},
	{"internal/auth/schemes", []string{"proto", "tree", "internal/auth/tlsport", "internal/ops/stats"}, "identities are proved without a connection"},
	{"internal/zab", []string{"proto"}, "packets know neither side"},
	{"internal/observermaster", []string{"proto", "tree", "session", "internal/sasl", "internal/zab"}, "observers get what any state machine applies"},
	{"internal/learner", []string{"proto", "internal/sasl", "internal/zab", "internal/offline/zkfiles", "tree"}, "a connection to a leader does not know what becomes of the transactions"},
	{"internal/words", nil, "a server is asked from outside, whatever the answer is for"},
	{"internal/mirror", []string{"proto", "internal/learner", "internal/offline/zkfiles", "internal/smallfile", "internal/words", "internal/zoocfg"}, "a copy of a state is kept, and its origin checked, without a server"},
	{"internal/ops/status", nil, "a picture of a server is data"},
	{"internal/ops/fourletter", []string{"internal/ops/status"}, "texts are made from a picture of the server"},
	{"internal/ops/admin", []string{"internal/ops/status", "internal/ops/fourletter", "internal/zoocfg"}, "answers are made from a picture of the server"},
	{"internal/ops/mntr", []string{"internal/ops/status", "internal/ops/fourletter"}, "lines are made from metrics, however they are counted"},
	{"internal/ops/httpport", []string{"internal/auth/certs"}, "a port for HTTP does not know what it serves"},
	{"internal/ops/snapshots", []string{"proto", "tree", "session", "raftfsm", "internal/auth/certs", "internal/auth/schemes", "internal/ops/admin", "internal/ops/stats"}, "the whole state is read and replaced without a client's connection"},
	{"internal/ops/stats", []string{"proto", "tree", "internal/histogram", "internal/ops/status"}, "counters do not know who counts"},
	{"internal/ops/monitor", []string{"internal/histogram", "internal/mirrored", "internal/limits", "internal/ops/fourletter", "internal/ops/mntr", "internal/ops/stats", "internal/ops/status", "raftfsm", "watch"}, "metrics are read from counters, wherever they are counted"},
	{"internal/listen", []string{"internal/quorum"}, "a port is opened without a look at what it is for"},
	{"internal/machine", []string{"internal/ops/status"}, "a machine is looked at without a server"},
	{"internal/ops/metrics", []string{"internal/ops/status"}, "numbers are read from a picture of the server"},
	{"server", []string{"internal/defaults", "internal/mirrored", "internal/observermaster", "proto", "internal/sasl", "tree", "session", "watch", "raftfsm", "internal/vfs", "internal/raftlog", "storage", "internal/quorum", "internal/auth/...", "internal/buffer", "internal/limits", "internal/listen", "internal/machine", "internal/ops/...", "internal/pipe", "internal/poller", "internal/smallfile", "internal/version", "internal/zoocfg"}, "the server stands on the replicated state, never on the client"},
	{"server/formats", []string{"tree", "session", "server", "internal/auth/keystore", "internal/offline/backup", "internal/offline/zkfiles"}, "formats are passed to a server that doesn't know them"},
	{"server/prom", []string{"server", "internal/ops/metrics"}, "an exporter is passed to a server that doesn't know it"},
	{"server/zktest", []string{"proto", "tree", "session", "watch", "raftfsm", "internal/vfs", "internal/raftlog", "internal/quorum", "server", "internal/ops/status", "client", "internal/smallfile"}, "the test server is the real one, and hands out the client that a test would open itself"},
	{"server/zktest/internal/testcluster", []string{"server"}, "servers of a harness are configured by files, as that of go-zookeeper does it"},
	{"server/zktest/gozk", []string{"server/zktest"}, "a connection of go-zookeeper needs only the dialer"},
	{"server/zktest/gozk/zk", []string{"server/zktest", "server/zktest/internal/testcluster"}, "go-zookeeper's harness has no more of zktest than the test"},
	{"server/zktest/samuel", []string{"server/zktest"}, "as gozk"},
	{"internal/control", []string{"proto", "server", "server/zktest"}, "an endpoint is a call of zktest, and knows no more"},
	{"internal/zktxn", []string{"proto", "tree"}, "a transaction of ZooKeeper means the same in a file and on a connection"},
	{"internal/mirrored", []string{"proto"}, "the vocabulary of a mirror stands on nothing"},
	{"internal/takeover", []string{"proto", "tree", "session", "raftfsm", "internal/learner", "internal/mirror", "internal/mirrored", "internal/offline/zkfiles", "internal/smallfile", "internal/vfs", "internal/words", "internal/zktxn"}, "a mirror knows its server by what it may propose"},
	{"internal/offline/zkfiles", []string{"proto", "tree", "session", "internal/zab", "internal/zktxn"}, "ZooKeeper's files are read and written without a server"},
	{"internal/offline/migrate", []string{"tree", "session", "raftfsm", "server", "internal/defaults", "internal/vfs", "internal/raftlog", "internal/offline/zkfiles"}, "ZooKeeper's files become the state of a server that is stopped"},
	{"internal/offline/inspect", []string{"proto", "tree", "session", "raftfsm", "raftfsm/boltlog", "internal/raftlog", "internal/offline/zkfiles", "internal/offline/backup"}, "what lies on disks is looked at without a server"},
	{"internal/offline/backup", []string{"proto", "tree", "session", "raftfsm", "internal/vfs", "internal/raftlog", "internal/offline/zkfiles"}, "a backup is taken from outside of a server, and makes the directories of one that does not run"},
	{"internal/offline/container", []string{"internal/zoocfg", "internal/smallfile"}, "a container's files are written before there is a server"},
	{"internal/statefulset", []string{"client"}, "the members of an ensemble are changed by a client, and counted by Kubernetes"},
	{"internal/ops/health", []string{"internal/zoocfg", "internal/auth/keystore"}, "a server is asked from outside"},
	{"internal/ops/audit", []string{"proto", "tree", "raftfsm", "internal/limits"}, "a line of the audit log is made of what was applied"},
	{"internal/cli", []string{"client", "proto", "internal/cli/...", "internal/spelling", "internal/words", "internal/zoocfg"}, "the command line must work against any ZooKeeper: of our server, only the parser of its files"},
	{"internal/cli/contexts", []string{"internal/spelling"}, "a user's file is read without a connection"},
	{"internal/cli/diagnose", []string{"client", "proto"}, "the cause of a failed connection is found from outside, with any ZooKeeper"},
	{"internal/cli/terminal", []string{"internal/smallfile"}, "a terminal knows no ensemble"},
	{"internal/cli/overview", []string{"internal/words"}, "asking servers how they are takes a socket"},
	{"internal/cli/subtree", []string{"client", "proto"}, "copying and comparing trees takes a client, of any ZooKeeper"},
	{"internal/manual", []string{"internal/cli", "internal/version", "internal/zoocfg"}, "man pages are made of descriptions, without a server"},
	{"internal/bench", []string{"proto"}, "the load generator must measure any ZooKeeper: nothing of our server or client"},
	{"cmd/zkgo", []string{"internal/bench", "internal/defaults", "internal/cli", "internal/cli/...", "internal/listen", "internal/manual", "internal/version", "server", "server/...", "internal/control", "internal/auth/...", "internal/ops/...", "raftfsm", "raftfsm/boltlog", "internal/vfs", "internal/raftlog", "internal/quorum", "internal/offline/...", "client", "recipes", "proto", "internal/smallfile", "internal/spelling", "internal/statefulset", "internal/takeover", "internal/zoocfg", "tree"}, "the command is flags and terminal only"},
}

// libraries lists which packages may import which library families.
var libraries = map[string][]string{
	"github.com/hashicorp/raft":       {"raftfsm", "raftfsm/internal/ensemble", "raftfsm/internal/logreader", "raftfsm/internal/membership", "raftfsm/internal/propose", "raftfsm/internal/bootstrap", "raftfsm/internal/datadir", "raftfsm/internal/replica", "raftfsm/boltlog", "internal/raftlog", "storage", "internal/quorum/rpc", "internal/quorum/transport", "raftfsm/internal/apply", "internal/quorum"},
	"github.com/go-zookeeper":         {"recipes/gozk", "server/zktest/gozk", "server/zktest/gozk/zk"},
	"github.com/samuel/go-zookeeper":  {"server/zktest/samuel"},
	"go.etcd.io/bbolt":                {"raftfsm/boltlog"},
	"github.com/hashicorp/go-msgpack": {"raftfsm/boltlog"},
	"github.com/spf13/cobra":          {"cmd/zkgo", "internal/manual"},
	"github.com/spf13/pflag":          {"cmd/zkgo", "internal/manual"},
	"golang.org/x/term":               {"internal/cli", "cmd/zkgo"},
	"github.com/coreos/go-systemd":    {"cmd/zkgo"},
	"github.com/HdrHistogram":         {"internal/bench"},
	"golang.org/x/sync":               {"internal/bench"},
	"github.com/prometheus":           {"internal/ops/metrics", "server/prom"},
	"github.com/pavlo-v-chernykh":     {"internal/auth/keystore"},
	"software.sslmate.com/src":        {"internal/auth/keystore"},
	"go.yaml.in/yaml":                 {"server/zktest", "internal/cli/contexts", "internal/cli/subtree"},
	"github.com/youmark":              {"internal/auth/keystore"},
	"golang.org/x/crypto":             {"internal/auth/keystore", "deploy/release"},
	"github.com/klauspost/compress":   {"internal/offline/zkfiles"},
	"github.com/schollz/progressbar":  {"cmd/zkgo", "internal/cli"},
}

// unsafeFiles lists the files that may import unsafe, and the reason.
var unsafeFiles = map[string]string{
	"internal/poller/epoll_linux.go":       "a system call takes a pointer",
	"internal/poller/socket_linux.go":      "a system call takes a pointer",
	"internal/vfs/blocks.go":               "direct writes need aligned memory",
	"proto/jute.go":                        "texts of a request alias its frame",
	"internal/poller/queues_linux.go":      "a system call takes a pointer",
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

// groups are the folders of tests. A suite should build on its own group and on the kit,
// and the kit only on the API: not on the subject of a suite, and on nothing internal.
var groups = map[string][]string{
	"kit":    {"proto", "tree", "raftfsm", "server", "server/zktest", "client", "recipes", "tests/kit/..."},
	"compat": {"tests/kit/...", "tests/compat/..."},
	"safety": {"tests/kit/...", "tests/safety/..."},
	"perf":   {"tests/kit/...", "tests/perf/..."},
	"arch":   {"tests/kit/must"},
}

// TestGroupsOfTests checks the imports between the folders of tests, also in test files, and the
// imports of the kit.
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

// TestOnlyTheKitStartsServers: only the kit should start servers. To make a process die
// with its test, we have to reserve a thread for it, which is easy to get wrong.
func TestOnlyTheKitStartsServers(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if f.threads && strings.HasPrefix(f.pkg, "tests/") && !strings.HasPrefix(f.pkg, "tests/kit/") {
			t.Errorf("%s keeps a thread: tests/kit/process starts processes", f.path)
		}
	}
}

// TestEveryPackageHasARule: every package should have a rule, because otherwise it could import
// anything.
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

// TestOnlyTestsImportTesting: the shipped program contains the test server, but should not
// link package testing, which would add its flags.
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

// checkLibrary checks that a package may import a library.
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

func TestEveryPackageHasADoc(t *testing.T) {
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
