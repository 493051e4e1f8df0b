package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// limit bounds what a reader has to keep in their head. Its exceptions name what exceeds it
// and say why.
type limit struct {
	of         string
	most       int
	exceptions map[string]string
}

var limits = []limit{
	{"fields of a type", 25, map[string]string{
		"client.core":                "what the goroutines of a client share: connection, session and subscribers, to be grouped",
		"client.link":                "one connection: its socket, its queues and its times, to be grouped",
		"internal/quorum.Transport":  "to be split: dialing, accepting, heartbeats and commits in one type",
		"raftfsm.Config":             "one field per setting",
		"raftfsm.Node":               "to be split: it owns the ensemble, the machine and the log",
		"raftfsm.Numbers":            "one field per metric",
		"raftfsm.ensemble":           "to be split: it reaches into Node",
		"raftfsm.machine":            "to be split: applying, snapshots and digests in one type",
		"server.stats":               "one field per counter",
		"internal/ops/status.Server": "one field per line that operators read",
		"internal/zoocfg.Config":     "one field per key of zoo.cfg",
	}},
	{"methods of a type", 40, map[string]string{
		"client.Client":             "the API: one method per operation of the protocol",
		"client.core":               "connecting, liveness and failures of one client, to be split like its fields",
		"internal/quorum.Transport": "to be split: dialing, accepting, heartbeats and commits in one type",
		"raftfsm.Node":              "to be split: it owns the ensemble, the machine and the log",
		"raftfsm.ensemble":          "to be split: membership, elections, sessions and forwarding in one type",
		"raftfsm.machine":           "to be split: applying, snapshots and digests in one type",
		"server.Server":             "to be split: it still audits, authenticates, and serves operators",
		"server/zktest.Server":      "the API of the test server: one method per fault and per question",
		"internal/zoocfg.Config":    "one method per group of keys that it parses",
	}},
	{"files in a folder", 30, map[string]string{
		"client":          "one file over: operations and connecting in one package",
		"internal/quorum": "to be split together with Transport",
		"raftfsm":         "to be split: command, propose, apply, bootstrap, ensemble and datadir",
		"server":          "to be split: auth, limits and ops",
	}},
}

// TestTypesAndFoldersStaySmall checks every package outside tests. An exception that isn't
// needed any more fails the test, so that the lists only shrink.
func TestTypesAndFoldersStaySmall(t *testing.T) {
	t.Parallel()
	sizes := measure(sources(t))
	for i, l := range limits {
		for _, problem := range l.check(sizes[i]) {
			t.Error(problem)
		}
	}
	if len(sizes[0]) < 500 || len(sizes[1]) < 500 || len(sizes[2]) < 30 {
		t.Fatalf("only %d types with fields, %d with methods, %d folders: this test does not see the module", len(sizes[0]), len(sizes[1]), len(sizes[2]))
	}
}

// check returns what exceeds the limit, and the exceptions that aren't needed.
func (l limit) check(sizes map[string]int) (problems []string) {
	for what, n := range sizes {
		if _, excepted := l.exceptions[what]; n > l.most && !excepted {
			problems = append(problems, fmt.Sprintf("%s: %d %s, more than %d: split it by subject", what, n, l.of, l.most))
		}
	}
	for what, why := range l.exceptions {
		if n := sizes[what]; n <= l.most {
			problems = append(problems, fmt.Sprintf("%s: %d %s need no exception any more (%s)", what, n, l.of, why))
		}
	}
	slices.Sort(problems)
	return problems
}

// TestCheckOfALimit checks that a limit reports both what exceeds it and stale exceptions.
func TestCheckOfALimit(t *testing.T) {
	t.Parallel()
	l := limit{"fields", 2, map[string]string{"excepted": "it has to", "gone": "it had to", "small": "it had to"}}
	got := l.check(map[string]int{"large": 3, "fits": 2, "excepted": 3, "small": 2})
	want := []string{"gone: 0 fields need no exception any more (it had to)", "large: 3 fields, more than 2: split it by subject", "small: 2 fields need no exception any more (it had to)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// measure returns, in the order of limits, the fields and methods of each type by folder and
// name, and the files of each folder. Test files don't count. A method that several systems
// have in files of their own counts once.
func measure(files []file) (sizes [3]map[string]int) {
	for i := range sizes {
		sizes[i] = map[string]int{}
	}
	seen := map[string]bool{}
	for _, f := range files {
		if f.test || strings.HasPrefix(f.pkg, "tests/") {
			continue
		}
		for name, n := range f.fields {
			sizes[0][f.pkg+"."+name] = max(n, sizes[0][f.pkg+"."+name])
		}
		for name := range f.funcs {
			typ, _, method := strings.Cut(name, ".")
			if id := f.pkg + "." + name; method && !seen[id] {
				seen[id] = true
				sizes[1][f.pkg+"."+typ]++
			}
		}
		sizes[2][f.pkg]++
	}
	return sizes
}

// TestMeasure checks the rules of counting with a package of two files.
func TestMeasure(t *testing.T) {
	t.Parallel()
	sizes := measure([]file{
		{pkg: "p", fields: map[string]int{"a": 3}, funcs: map[string]int{"a.one": 1, "a.two": 1, "f": 1}},
		{pkg: "p", fields: map[string]int{"a": 1}, funcs: map[string]int{"a.one": 1, "b.one": 1}},
		{pkg: "p", test: true, funcs: map[string]int{"a.three": 1}},
		{pkg: "tests/q", funcs: map[string]int{"c.one": 1}},
	})
	for i, want := range []map[string]int{{"p.a": 3}, {"p.a": 2, "p.b": 1}, {"p": 2}} {
		if !maps.Equal(sizes[i], want) {
			t.Errorf("%s: %v, want %v", limits[i].of, sizes[i], want)
		}
	}
}
