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

// dependencies returns the packages that a package links, without those of the standard
// library.
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
