package zoocfg

import (
	"os"
	"path/filepath"
	"testing"
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
		if err := os.WriteFile(path, []byte(tc.before), 0o640); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second call changes nothing
			if err := PointAt(path, "/d", tc.client); err != nil {
				t.Fatal(err)
			}
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
