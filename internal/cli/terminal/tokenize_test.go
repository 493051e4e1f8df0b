package terminal

import (
	"slices"
	"testing"
)

// TestSplit checks that lines are split as in zkCli.sh, including the odd cases.
func TestSplit(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"ls /":                     {"ls", "/"},
		"  ls   /  ":               {"ls", "/"},
		`set /a "two  words"`:      {"set", "/a", "two  words"},
		`set /a 'with "quotes"'`:   {"set", "/a", `with "quotes"`},
		`set /a ""`:                {"set", "/a", ""},
		`set /a a"b c"`:            {"set", "/a", `a"b`, `c"`},
		`set /a "not closed`:       {"set", "/a", "not", "closed"},
		`set /a "x"y`:              {"set", "/a", "x", "y"},
		`set /a it's`:              {"set", "/a", "it's"},
		"set\t/a\tx":               {"set", "/a", "x"},
		`create /grüße 'schöne "'`: {"create", "/grüße", `schöne "`},
	} {
		if got := Split(line); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
