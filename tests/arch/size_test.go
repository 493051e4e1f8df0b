package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// limit bounds the size of something that a reader must keep in mind. Its exceptions have
// a reason each.
type limit struct {
	of         string
	most       int
	exceptions map[string]string
}

var limits = []limit{
	{"fields of a type", 25, map[string]string{
		"internal/ops/status.Server": "one field per line that operators read",
		"internal/zoocfg.Config":     "one field per key of zoo.cfg",
	}},
	{"methods of a type", 40, map[string]string{
		"client.Client":          "the API: one method per operation of the protocol",
		"server/zktest.Server":   "the API of the test server: one method per fault and per question",
		"internal/zoocfg.Config": "one method per group of keys that it parses",
	}},
	{"files in a folder", 30, nil},
}

// TestTypesAndFoldersStaySmall checks every package outside tests. We fail the test if an
// exception isn't needed any more, so that the lists only shrink.
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
// name, and the files of each folder. We don't count test files, and count a method once if
// several systems have it in separate files.
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
