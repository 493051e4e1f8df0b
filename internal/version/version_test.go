package version

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var nine = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func TestStamp(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"1.2.3 0123456789ab 2026-11-22T09:00:00Z", "v1.2.3 0123456789abcdef0123456789abcdef01234567 2026-11-22T10:00:00+01:00"} {
		b, ok := readStamp(s)
		if !ok || b.version != "1.2.3" || b.revision != "0123456789ab" || !b.at.Equal(nine) {
			t.Error(s, b, ok)
		}
	}
	if b, ok := readStamp("devel unknown 1970-01-01T00:00:00Z"); !ok || b != (build{version: devel}) {
		t.Error(b, ok)
	}
	for _, s := range []string{"", "1.2.3", "1.2.3 a yesterday", "1.2.3 a b c", "$Format:devel %H %cI$"} {
		if _, ok := readStamp(s); ok {
			t.Errorf("%q is a stamp", s)
		}
	}
}

// Every way to build says which commit it was, if Go knows it, and a date.
func TestBuildInfo(t *testing.T) {
	t.Parallel()
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-22T09:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	const untagged = "v0.1.1-0.20261122090000-0123456789ab"
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want build
	}{
		"go build in a checkout, without a tag": {
			debug.BuildInfo{Main: debug.Module{Path: module, Version: untagged + "+dirty"}, Settings: vcs},
			build{version: "0.1.1-0.20261122090000-0123456789ab+dirty", revision: "0123456789ab", at: nine}},
		"go build in a checkout, at a tag": {
			debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.0"}, Settings: vcs},
			build{version: "0.1.0", revision: "0123456789ab", at: nine}},
		"go build by an old Go": {
			debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}, Settings: vcs},
			build{version: devel, revision: "0123456789ab", at: nine}},
		"go install at a tag":    {debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.0"}}, build{version: "0.1.0"}},
		"go install at a commit": {debug.BuildInfo{Main: debug.Module{Path: module, Version: untagged}}, build{version: untagged[1:], revision: "0123456789ab", at: nine}},
		"go run":                 {debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, build{version: devel}},
		"an embedding program": {
			debug.BuildInfo{Main: debug.Module{Path: "example.com/app", Version: "v7.0.0"}, Deps: []*debug.Module{{Path: "example.com/other", Version: "v3.0.0"}, {Path: module, Version: "v0.1.0"}}, Settings: vcs},
			build{version: "0.1.0"}},
		"an embedding program with a replaced module": {
			debug.BuildInfo{Main: debug.Module{Path: "example.com/app"}, Deps: []*debug.Module{{Path: module, Version: "v0.1.0", Replace: &debug.Module{Path: "../zkgo"}}}, Settings: vcs},
			build{version: devel}},
	} {
		if got := fromInfo(&c.info); got.version != c.want.version || got.revision != c.want.revision || !got.at.Equal(c.want.at) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b          build
		text, line string
	}{
		{build{version: "0.1.0", revision: "0123456789ab", at: nine}, "3.9.5-zkgo0.1.0-0123456789ab, built on 2026-11-22 09:00 UTC", "commit 0123456789ab, 2026-11-22 09:00 UTC"},
		{build{version: "0.1.1-0.20261122090000-0123456789ab+dirty", revision: "0123456789ab", at: nine},
			"3.9.5-zkgo0.1.1-0.20261122090000-0123456789ab.dirty, built on 2026-11-22 09:00 UTC", "commit 0123456789ab, 2026-11-22 09:00 UTC"},
		{build{version: "0.1.0", at: nine, file: true}, "3.9.5-zkgo0.1.0-unknown, built on 2026-11-22 09:00 UTC", "commit unknown, 2026-11-22 09:00 UTC (of the program's file)"},
	} {
		if got := c.b.text(); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
		if got := c.b.line(); !strings.HasPrefix(got, "zkgo "+c.b.version+" (ZooKeeper 3.9.5) ") || !strings.HasSuffix(got, ", "+c.line) {
			t.Errorf("%q, want …, %q", got, c.line)
		}
	}
}

// This program is a test, for which Go has no commit.
func TestThisProgram(t *testing.T) {
	t.Parallel()
	if b := find(); b.version == "" || b.at.IsZero() || time.Since(b.at) < 0 {
		t.Errorf("%+v", b)
	}
}
