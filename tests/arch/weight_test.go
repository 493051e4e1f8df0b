package arch

import (
	"os/exec"
	"strings"
	"testing"
)

// TestClientIsLight: a program that imports the client or the recipes links only
// proto, sasl and the standard library besides: no server, command, user interface or
// metrics, and no other library.
func TestClientIsLight(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"client", "recipes"} {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+"/"+pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		deps := strings.Fields(string(out))
		if len(deps) == 0 {
			t.Fatalf("%s: go list names nothing, not even the package", pkg)
		}
		for _, dep := range deps {
			rel, ours := strings.CutPrefix(dep, module+"/")
			if !ours || rel != "proto" && rel != "internal/sasl" && rel != "client" && rel != pkg && !strings.HasPrefix(rel, pkg+"/") {
				t.Errorf("%s pulls in %s", pkg, dep)
			}
		}
	}
}
