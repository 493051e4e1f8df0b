package locks

import (
	"os"
	"slices"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
	"github.com/zkgo/zkgo/tests/kit/tools"
)

// start starts n servers of zkgo or of ZooKeeper; if another process has bound a port in the
// meantime, we try others.
func start(t *testing.T, n int, real bool) *servers.Ensemble {
	t.Helper()
	program := servers.Zkgo(process.Binary(t))
	if real {
		var err error
		if program, err = servers.ZooKeeper("256m"); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for range 3 {
		var e *servers.Ensemble
		if e, err = servers.Start(program, t.TempDir(), n, "tickTime=1000", "initLimit=40", "syncLimit=10"); err != nil {
			continue
		}
		t.Cleanup(func() {
			e.Kill()
			for _, s := range e.Servers {
				if t.Failed() {
					t.Logf("%s:\n%s", s, s.Tail())
				}
			}
		})
		return e
	}
	t.Fatal(err)
	return nil
}

// languages start the workers in other languages.
type languages struct{ java, python []string }

// findTools installs missing tools, or skips the test if the environment doesn't ask for
// it.
func findTools(t *testing.T) languages {
	t.Helper()
	found := tools.Find(t)
	return languages{java: found.Java(t, "workers/Locks.java"), python: []string{found.Python, "-B", "workers/locks.py"}}
}

// command returns the command line of a worker, without the jobs.
func (k languages) command(t *testing.T, lang string) []string {
	t.Helper()
	switch lang {
	case "java":
		return slices.Clone(k.java)
	case "python":
		return slices.Clone(k.python)
	}
	self := must.Get(os.Executable())(t)
	kind := "careful"
	if lang == "go-careless" {
		kind = "careless"
	}
	return []string{self, "worker", kind}
}
