package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// ask sends a four-letter word and returns the answer.
func ask(t *testing.T, addr, word string) string {
	t.Helper()
	answer, err := process.Word(addr, word, patience)
	if err != nil {
		t.Fatalf("%s: %v", word, err)
	}
	return answer
}

// stir gives a server one session with an ephemeral znode and watches.
func stir(t *testing.T, addr, name string) *process.Client {
	t.Helper()
	c := must.Get(process.Connect(addr, 0, nil, 30*time.Second))(t)
	t.Cleanup(func() { _ = c.Close() })
	for _, r := range []struct {
		op  proto.Op
		req proto.Record
	}{
		{proto.OpCreate, &proto.CreateRequest{Path: "/e-" + name, Data: []byte("data"), ACL: proto.OpenACL(), Flags: int32(proto.ModeEphemeral)}},
		{proto.OpGetData, &proto.GetDataRequest{Path: "/e-" + name, Watch: true}},
		{proto.OpExists, &proto.ExistsRequest{Path: "/absent", Watch: true}},
		{proto.OpGetChildren2, &proto.GetChildrenRequest{Path: "/", Watch: true}},
	} {
		if got, err := c.Do(r.op, r.req); err != nil && got.Err != proto.ErrNoNode {
			t.Fatalf("%v: %v, %v", r.op, got.Err, err)
		}
	}
	return c
}

// shapes replace what differs between servers, and over time, with its type.
var shapes = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`3\.9\.5-[^ ,\t\n]+`), "VERSION"},
	{regexp.MustCompile(`built on \d{4}-\d\d-\d\d \d\d:\d\d UTC`), "built on DATE"},
	{regexp.MustCompile(`\w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}`), "DATE"},
	{regexp.MustCompile(`(?m)(Dir=)/.*$`), "${1}PATH"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`/e-\w+`), "/e"}, // listed by session, so the order depends on the leader
	{regexp.MustCompile(`0x[0-9a-f]+`), "0xHEX"},
	{regexp.MustCompile(`-?\d+\.\d+`), "FLOAT"},
	{regexp.MustCompile(`-?\d+`), "INT"},
}

// shape returns the answer with everything that differs replaced. We sort connections and
// watches, because ZooKeeper lists them in no fixed order, and remove the empty sets of
// dump.
func shape(word, answer string) string {
	for _, s := range shapes {
		answer = s.what.ReplaceAllString(answer, s.as)
	}
	lines := strings.Split(answer, "\n")
	switch word {
	case "envi": // the values differ, so we keep only the names
		for i, line := range lines {
			name, _, _ := strings.Cut(line, "=")
			lines[i] = name
		}
	case "cons", "stat", "wchc", "wchp":
		slices.Sort(lines)
	case "dump":
		lines = slices.DeleteFunc(lines, func(line string) bool { return line == "INT expire at DATE:" })
	case "conf":
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "server.") })
	case "mntr":
		return ""
	}
	return strings.Join(lines, "\n")
}

// TestWordsAreZooKeepers sends every word to a real server and to zkgo, standalone and as
// leader, follower and observer, and compares the replies line by line: the names, their
// order, the type of their values, and every blank.
func TestWordsAreZooKeepers(t *testing.T) {
	needOracle(t)
	t.Parallel()
	alone := oracle.Start(t, oracle.Options{})
	members := oracle.Ensemble(t, 3, oracle.Options{})
	leader, follower, observer := ensemble(t)
	ours := map[string]string{
		"standalone": start(t).ClientAddr(), "leader": leader.ClientAddr(),
		"follower": follower.ClientAddr(), "observer": observer.ClientAddr(),
	}
	theirs := map[string]string{"standalone": alone.Addr()}
	for _, m := range members {
		theirs[mode(t, m.Addr())] = m.Addr()
	}
	for _, role := range []string{"standalone", "leader", "follower"} {
		if theirs[role] == "" {
			t.Fatalf("no real server is %s: %v", role, theirs)
		}
		stir(t, theirs[role], role)
		stir(t, ours[role], role)
		for _, word := range fourletter.Words() {
			want, got := ask(t, theirs[role], word), ask(t, ours[role], word)
			if shape(word, want) != shape(word, got) {
				t.Errorf("%s, %s:\n%s\nwant\n%s", role, word, got, want)
			}
		}
		compareMonitors(t, role, ask(t, theirs[role], "mntr"), ask(t, ours[role], "mntr"))
	}
	if got := mode(t, ours["observer"]); got != "observer" {
		t.Errorf("the observer says that it is %s", got)
	}
}

// mode returns a server's mode.
func mode(t *testing.T, addr string) string {
	t.Helper()
	found := regexp.MustCompile(`Mode: (\w+)`).FindStringSubmatch(ask(t, addr, "srvr"))
	if found == nil {
		t.Fatalf("%s does not say what it is", addr)
	}
	return found[1]
}

// unlike matches names in mntr that ZooKeeper doesn't have.
var unlike = regexp.MustCompile(`^zk_(raft_\w+|behaviour_level\w*|config_file_differs|followers|clients_refused_\w+|memory_\w+|\w+_ack_latency)$`)

// keyed matches ZooKeeper's names that depend on what clients did since srst, which was among the
// words, and the names for its queue per learner, which zkgo doesn't have.
var keyed = regexp.MustCompile(`_per_namespace$|^zk_\w+_\d+_learner_handler_qp_\w+$`)

// compareMonitors compares the lines of our mntr with ZooKeeper's: names, prefixes, and
// types of values.
func compareMonitors(t *testing.T, role, theirs, ours string) {
	t.Helper()
	want := map[string]string{}
	for line := range strings.Lines(theirs) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		want[name] = kind(value)
	}
	n := 0
	for line := range strings.Lines(ours) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || strings.Contains(value, "\t") {
			t.Errorf("%s: %q is no line of mntr", role, line)
		}
		if unlike.MatchString(name) {
			continue
		}
		if n++; want[name] == "" {
			t.Errorf("%s: ZooKeeper has no %s", role, name)
		} else if kind(value) != want[name] {
			t.Errorf("%s: %s is of kind %q, ZooKeeper's of kind %q", role, name, kind(value), want[name])
		}
	}
	for name := range want {
		if !keyed.MatchString(name) && !strings.Contains("\n"+ours, "\n"+name+"\t") {
			t.Errorf("%s: %s is missing", role, name)
		}
	}
	if n < 150 {
		t.Errorf("%s: only %d of ZooKeeper's names", role, n)
	}
	first := func(s string) []string { // after the version
		lines := strings.Split(s, "\n")[1:3]
		if role == "standalone" {
			return lines[:1]
		}
		return lines
	}
	if !slices.Equal(first(ours), first(theirs)) {
		t.Errorf("%s: begins with %v, want %v", role, first(ours), first(theirs))
	}
}

// kind returns the type of a value, as a parser could read it.
func kind(value string) string {
	switch {
	case regexp.MustCompile(`^-?\d+$`).MatchString(value):
		return "int"
	case regexp.MustCompile(`^-?\d+\.\d+(E-?\d+)?$`).MatchString(value):
		return "float"
	}
	return "text"
}
