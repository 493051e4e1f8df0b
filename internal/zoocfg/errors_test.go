package zoocfg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestEveryError checks that one call reports all invalid lines and violated rules,
// in file order, and no errors that are only consequences of others.
func TestEveryError(t *testing.T) {
	t.Parallel()
	const list = "server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
	for _, tt := range []struct{ name, text, dynamic, myid, want string }{
		{"lines", "dataDir=DIR\nclientPort=x\ntickTime=y\nmaxClientCnxns=z\n", "", "", "2 clientPort, 3 tickTime, 4 maxClientCnxns"},
		{"lines and rules", "dataDir=DIR\nmaxClientCnxns=z\nminSessionTimeout=9\nmaxSessionTimeout=8\nsecureClientPortAddress=a\n", "", "",
			"2 maxClientCnxns, 5 secureClientPortAddress, 3 minSessionTimeout"},
		{"what follows from another error", "dataDir=DIR\nclientPort=x\nclientPortAddress=a\ninitLimit=q\nsyncLimit=2\n" + list, "", "1", "2 clientPort, 4 initLimit"},
		{"limits of an ensemble and myid", "dataDir=DIR\nclientPort=2181\n" + list, "", "", "0 initLimit, 0 syncLimit, 0 "},
		{"server lines", "dataDir=DIR\ninitLimit=5\nsyncLimit=2\nserver.1=a\nserver.2=b:1\nserver.300=c:1:2\n", "", "x", "4 server.1, 5 server.2, 6 server.300, 1 "},
		{"dynamic file", "dataDir=DIR\ninitLimit=5\nsyncLimit=z\ndynamicConfigFile=DIR/dyn\n", "server.1=a\nserver.2=b\nclientPort=1\n", "1",
			"3 syncLimit, 1 server.1, 2 server.2, 3 clientPort"},
		{"no directory", "clientPort=2181\ntickTime=0\n", "", "", "0 dataDir, 2 tickTime"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"myid": tt.myid, "dyn": tt.dynamic} {
				if text == "" {
					continue
				}
				must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			_, err := ParseText("zoo.cfg", strings.ReplaceAll(tt.text, "DIR", filepath.ToSlash(dir)))
			var first *Error
			if !errors.As(err, &first) {
				t.Fatalf("%v has no Error", err)
			}
			var errs problems
			errs.add(err)
			var got []string
			for _, err := range errs.list {
				var e *Error
				if !errors.As(err, &e) || e.File == "" {
					t.Fatalf("%v names no file", err)
				}
				got = append(got, fmt.Sprintf("%d %s", e.Line, e.Key))
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("got %s, want %s:\n%v", strings.Join(got, ", "), tt.want, err)
			}
		})
	}
}

// TestManyErrors checks that few errors are listed for a file of another kind, which
// has an error on every line.
func TestManyErrors(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "server.%d=\n", i)
	}
	_, err := ParseText("zoo.cfg", b.String())
	if n := strings.Count(err.Error(), "\n"); n != maxProblems || !strings.Contains(err.Error(), "only the first") {
		t.Errorf("%d lines", n+1)
	}
}
