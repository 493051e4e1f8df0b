package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// talking lists the packages that write to a terminal.
var talking = []string{"cmd/", "internal/cli", "internal/bench", "internal/offline/container", "deploy/", "tests/"}

// TestLibraryOnlyLogsWithItsLogger: an embedding program decides which messages go to which log. So
// a library package should use neither the standard streams nor a logger of the whole process.
func TestLibraryOnlyLogsWithItsLogger(t *testing.T) {
	t.Parallel()
	global := map[string][]string{
		"os":   {"Stdout", "Stderr"},
		"fmt":  {"Print", "Printf", "Println"},
		"slog": {"Default", "SetDefault", "Debug", "Info", "Warn", "Error", "Log"},
	}
	checked := 0
	for _, f := range sources(t) {
		if f.test || slices.ContainsFunc(talking, func(p string) bool { return strings.HasPrefix(f.path, p) }) {
			continue
		}
		checked++
		tree := must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join("../..", f.path), nil, parser.SkipObjectResolution))(t)
		ast.Inspect(tree, func(n ast.Node) bool {
			sel, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if x, is := sel.X.(*ast.Ident); is && slices.Contains(global[x.Name], sel.Sel.Name) {
				t.Errorf("%s uses %s.%s instead of the logger that the program has passed", f.path, x.Name, sel.Sel.Name)
			}
			return true
		})
	}
	if checked < 300 {
		t.Fatalf("only %d files: this test does not see the module", checked)
	}
}
