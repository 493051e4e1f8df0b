package zktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/compat/conformance"
)

// recorded is the directory with the real server's replies.
const recorded = "../../tests/compat/conformance/testdata"

// TestConformance plays the conformance scripts against the servers that Run and RunCluster
// start, for a cluster through the leader and through a follower, and compares with
// ZooKeeper's replies. The layers between client and server should be invisible.
func TestConformance(t *testing.T) {
	t.Parallel()
	differences, err := conformance.ReadDifferences(filepath.Join(recorded, "differences.txt"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(recorded, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if name == "differences" {
			continue
		}
		s, err := conformance.ReadScript(file)
		if err != nil {
			t.Fatal(err)
		}
		golden, err := os.ReadFile(filepath.Join(recorded, name+".golden"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := conformance.Apply(differences, s.Name, string(golden))
		if err != nil {
			t.Fatal(err)
		}
		for where, start := range map[string]func(*testing.T, zktest.Option) *zktest.Server{
			"alone":    func(t *testing.T, o zktest.Option) *zktest.Server { return zktest.Run(t, o) },
			"leader":   func(t *testing.T, o zktest.Option) *zktest.Server { return zktest.RunCluster(t, 3, o).Leader() },
			"follower": func(t *testing.T, o zktest.Option) *zktest.Server { return zktest.RunCluster(t, 3, o).Follower() },
		} {
			t.Run(name+"/"+where, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && (s.Slow() || where != "alone") {
					t.Skip("waits for the server's clock, or starts ensembles; not with -short")
				}
				if name == "reconfig" && where != "alone" {
					t.Skip("is about a server without an ensemble; tests/compat/ensemble has the scripts about one with")
				}
				got, err := conformance.Run(s, start(t, configured(t, s)).Addrs()[0])
				if err != nil {
					t.Error(err)
				}
				want := want
				if where != "alone" {
					want = withMembers(want, got)
				}
				if d := conformance.Compare(want, got); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// withMembers replaces the replies about /zookeeper/config in want with the replies in got.
// We recorded the transcripts with a standalone server, where it's empty, but an ensemble
// has its server list there.
func withMembers(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	if len(w) != len(g) {
		return want
	}
	asked := ""
	for i := range w {
		switch {
		case strings.HasPrefix(w[i], ">"):
			asked = w[i]
		case strings.Contains(asked, " /zookeeper/config"):
			w[i] = g[i]
		}
	}
	return strings.Join(w, "\n")
}

// configured applies the settings of a script to the server.
func configured(t *testing.T, s *conformance.Script) zktest.Option {
	t.Helper()
	lines := append([]string{"tickTime=2000", "dataDir=/unused", "clientPort=0", "maxClientCnxns=0"}, s.Server...)
	z, err := zoocfg.ParseText("zoo.cfg", strings.Join(append(lines, s.JVM...), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := server.LoadConfig(z.Path, zoocfg.Parsed(z))
	if err != nil {
		t.Fatal(err)
	}
	cfg.ClientAddr = ""
	return zktest.WithConfig(func(c *server.Config) { *c = cfg })
}
