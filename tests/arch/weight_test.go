package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestClientIsLight: a program that imports the client or the recipes should link only
// proto, sasl and the standard library in addition: no server, command, user interface or
// metrics, and no other library.
func TestClientIsLight(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"client", "recipes"} {
		for _, dep := range dependencies(t, pkg) {
			rel, ours := strings.CutPrefix(dep, module+"/")
			if !ours || rel != "proto" && rel != "internal/sasl" && rel != "client" && rel != pkg && !strings.HasPrefix(rel, pkg+"/") {
				t.Errorf("%s pulls in %s", pkg, dep)
			}
		}
	}
}

// TestServerIsWithoutBolt: a program that embeds a server should link bbolt only if it
// imports boltlog.
func TestServerIsWithoutBolt(t *testing.T) {
	t.Parallel()
	for pkg, links := range map[string]bool{"server": false, "raftfsm": false, "raftfsm/boltlog": true} {
		deps := dependencies(t, pkg)
		if slices.Contains(deps, "go.etcd.io/bbolt") != links {
			t.Errorf("%s links %q", pkg, deps)
		}
	}
}

// coreLibraries are the libraries that a server links: Raft and its dependencies, the system's
// calls, and for zktest a reader of YAML. Prometheus, key stores and the formats of ZooKeeper's
// files are passed in by programs that want them.
var coreLibraries = []string{
	"github.com/hashicorp/raft", "github.com/hashicorp/go-hclog", "github.com/hashicorp/go-immutable-radix", "github.com/hashicorp/go-metrics",
	"github.com/hashicorp/go-msgpack/v2", "github.com/hashicorp/golang-lru", "github.com/fatih/color", "github.com/mattn/go-colorable",
	"github.com/mattn/go-isatty", "golang.org/x/sys",
}

// TestServerIsLight: a program that embeds a server, or tests with one, links no library but
// these, and none of the packages for files that not every server has.
func TestServerIsLight(t *testing.T) {
	t.Parallel()
	for pkg, libraries := range map[string][]string{
		"server":        coreLibraries,
		"server/zktest": append([]string{"go.yaml.in/yaml/v3"}, coreLibraries...),
	} {
		used := map[string]bool{}
		for _, dep := range dependencies(t, pkg) {
			if rel, ours := strings.CutPrefix(dep, module+"/"); ours {
				if strings.HasPrefix(rel, "internal/offline/") || rel == "internal/auth/keystore" || rel == "internal/ops/metrics" || rel == "raftfsm/boltlog" {
					t.Errorf("%s links %s", pkg, rel)
				}
				continue
			}
			i := slices.IndexFunc(libraries, func(lib string) bool { return dep == lib || strings.HasPrefix(dep, lib+"/") })
			if i < 0 {
				t.Errorf("%s links %s", pkg, dep)
				continue
			}
			used[libraries[i]] = true
		}
		if len(used) != len(libraries) {
			t.Errorf("%s links only %v of %q", pkg, used, libraries)
		}
	}
}

// dependencies returns the packages that a package links, except for the standard library.
func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+"/"+pkg).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	deps := strings.Fields(string(out))
	if len(deps) == 0 {
		t.Fatalf("%s: go list names nothing, not even the package", pkg)
	}
	return deps
}
