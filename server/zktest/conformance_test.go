package zktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/server/zoocfg"
	"github.com/zkgo/zkgo/tests/conformance"
)

// recorded is where the real server's answers are.
const recorded = "../../tests/conformance/testdata"

// TestConformance plays the conformance scripts to what Run starts and compares
// with what ZooKeeper answered: all that stands between client and server here
// must not be seen.
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := conformance.ReadScript(file)
			if err != nil {
				t.Fatal(err)
			}
			if testing.Short() && s.Slow() {
				t.Skip("waits for the server's clock; not with -short")
			}
			golden, err := os.ReadFile(filepath.Join(recorded, name+".golden"))
			if err != nil {
				t.Fatal(err)
			}
			want, err := conformance.Apply(differences, s.Name, string(golden))
			if err != nil {
				t.Fatal(err)
			}
			zs := zktest.Run(t, configured(t, s))
			got, err := conformance.Run(s, zs.Addrs()[0])
			if err != nil {
				t.Error(err)
			}
			if d := conformance.Compare(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// configured gives the server the settings of a script.
func configured(t *testing.T, s *conformance.Script) zktest.Option {
	t.Helper()
	lines := append([]string{"tickTime=2000", "dataDir=/unused", "clientPort=0", "maxClientCnxns=0"}, s.Server...)
	z, err := zoocfg.ParseText("zoo.cfg", strings.Join(append(lines, s.JVM...), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := server.FromZooCfg(z)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ClientAddr = ""
	return zktest.WithConfig(func(c *server.Config) { *c = cfg })
}
