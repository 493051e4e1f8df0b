package locks

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	a, b := &holder{lang: "go", token: 10}, &holder{lang: "java", token: 20}
	for name, c := range map[string]struct {
		events []event
		want   string
	}{
		"in turn": {[]event{
			{kind: entered, who: a}, {kind: fenced, who: a, value: 1, taken: true}, {kind: left, who: a, held: true},
			{kind: entered, who: b}, {kind: fenced, who: b, value: 2, taken: true}, {kind: left, who: b},
		}, ""},
		"late and refused": {[]event{
			{kind: entered, who: a}, {kind: entered, who: b}, {kind: fenced, who: b, value: 1, taken: true},
			{kind: plainly, who: a, value: 1}, {kind: fenced, who: a, value: 1}, {kind: left, who: a},
		}, ""},
		"late and taken": {[]event{
			{kind: entered, who: a}, {kind: entered, who: b}, {kind: fenced, who: a, value: 1, taken: true},
		}, "was taken after"},
		"a write lost": {[]event{
			{kind: entered, who: a}, {kind: fenced, who: a, value: 1, taken: true},
			{kind: entered, who: b}, {kind: fenced, who: b, value: 1, taken: true},
		}, "a write is lost"},
		"a lease that lies": {[]event{
			{kind: entered, who: a}, {kind: entered, who: b}, {kind: fenced, who: a, value: 1}, {kind: left, who: a, held: true},
		}, "said that it was held"},
		"two at once": {[]event{{kind: alive, who: b, other: a}}, "is there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(judge(c.events), "\n")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}
