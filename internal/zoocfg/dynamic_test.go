package zoocfg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestPointAt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, before, after string
		client              bool
	}{
		{name: "lines, comments and order stay",
			before: "# one\ntickTime=5\n\n# two\nserver.1=a:1:2\nserver.2=b:1:2\n# three\nclientPort=3\n",
			after:  "# one\ntickTime=5\n\n# two\ndynamicConfigFile=/d\n# three\nclientPort=3\n"},
		{name: "the next version", before: "a=1\ndynamicConfigFile=/c\nb=2\n", after: "a=1\ndynamicConfigFile=/d\nb=2\n"},
		{name: "the client port moves along", client: true,
			before: "clientPort=3\nclientPortAddress=h\nsecureClientPort=4\nserver.1=a:1:2;3\n", after: "secureClientPort=4\ndynamicConfigFile=/d\n"},
		{name: "continued lines and spaces", before: " server.1 : a:1\\\n   :2\ngroup.1=1\nweight.1=1\nx=y", after: "dynamicConfigFile=/d\nx=y"},
		{name: "nothing to take out", before: "x=y", after: "x=y\ndynamicConfigFile=/d\n"},
		{name: "carriage returns", before: "x=y\r\nserver.1=a:1:2\r\n", after: "x=y\r\ndynamicConfigFile=/d\n"},
	} {
		path := filepath.Join(t.TempDir(), "zoo.cfg")
		must.Do(t, os.WriteFile(path, []byte(tc.before), 0o640))
		for range 2 { // the second call changes nothing
			must.Do(t, PointAt(path, "/d", tc.client))
			got, err := os.ReadFile(path)
			if err != nil || string(got) != tc.after {
				t.Errorf("%s: %q, want %q, %v", tc.name, got, tc.after, err)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: mode %v, %v", tc.name, info.Mode(), err)
		}
	}
	if err := PointAt(filepath.Join(t.TempDir(), "none"), "/d", false); err == nil {
		t.Error("a file that is not there")
	}
}

// TestPointAtOddPaths checks that the parser, which decodes ISO-8859-1, reads the path
// that pointAt has written.
func TestPointAtOddPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/etc/zoo.cfg.dynamic.100000000", "/srv/ü conf/zoo1.cfg.dynamic.1", "/日本/\U0001F600/d", `C:\conf\u0041\d`, "/a=b:c#d!e/f",
		"/tab\tand\nnewline\rand\fin it/d", "/\x00\x01\x7f\u0080\u00ff\uffff/d", `/ends with \`, "=d", ":d", "#d",
	} {
		text, err := pointAt("tickTime=5\n", path, false)
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		props, err := properties(text)
		if err != nil || len(props) != 2 || props[1].key != "dynamicConfigFile" || props[1].value != path || props[1].eightBit {
			t.Errorf("%q is read as %+v, %v", path, props, err)
		}
	}
	if props, err := properties("k=" + escape("  v") + "\n"); err != nil || props[0].value != "  v" {
		t.Errorf("leading blanks: %+v, %v", props, err)
	}
	for _, path := range []string{"/bad\xff/d", " /leading", "/trailing "} {
		if _, err := pointAt("", path, false); err == nil || !strings.Contains(err.Error(), "dynamicConfigFile") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// We have to understand every line of a list for a reconfig: if we skipped a line, the
// reconfig would remove its server.
func TestParseMembership(t *testing.T) {
	t.Parallel()
	const two = "server.1=a:1:2;3\nserver.2=b:1:2:observer;0.0.0.0:3\n"
	for name, text := range map[string]string{
		"plain": two, "byte order mark": "\ufeff" + two, "CRLF": strings.ReplaceAll(two, "\n", "\r\n"),
		"continued line": strings.Replace(two, "=b:", "=\\\n  b:", 1), "version": two + "version=100000000\n", "comment": "# servers\n\n" + two,
		"one group": two + "group.1=1\nweight.1=1\n",
	} {
		m, err := ParseMembership("list", text)
		if err != nil || len(m.Servers) != 2 || m.Servers[1].Role != Observer {
			t.Errorf("%s: %v, %+v", name, err, m)
		}
	}
	for want, text := range map[string]string{
		"list:3: sever.3": two + "sever.3=c:1:2;3\n", "list:1: dataDir": "dataDir=/x\n" + two, "no server": "version=1\n",
		"list:3: server.1": two + "server.1=c:1:2;3\n", "hierarchical": two + "server.3=c:1:2;3\ngroup.1=1\ngroup.2=3\n",
	} {
		if _, err := ParseMembership("list", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
