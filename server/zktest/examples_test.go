package zktest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEverythingHasAnExample checks that every exported name of this package occurs in an
// example that go test runs.
func TestEverythingHasAnExample(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	exported, shown := make(map[string]string), make(map[string]bool)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, isFunc := d.(*ast.FuncDecl)
			switch test := strings.HasSuffix(name, "_test.go"); {
			case !isFunc:
			case !test && fn.Name.IsExported() && ofExported(fn):
				exported[fn.Name.Name] = name
			case test && strings.HasPrefix(fn.Name.Name, "Example") && hasOutput(f, fn):
				ast.Inspect(fn, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok {
						shown[sel.Sel.Name] = true
					}
					return true
				})
			}
		}
	}
	if len(exported) < 50 {
		t.Fatalf("this test sees only %d functions", len(exported))
	}
	for name, file := range exported {
		if !shown[name] && name != "String" {
			t.Errorf("%s, in %s, is in no example that is run", name, file)
		}
	}
}

// hasOutput reports whether go test runs an example, i.e. whether it has an output
// comment.
func hasOutput(f *ast.File, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() > fn.Pos() && c.End() < fn.End() && strings.HasPrefix(c.Text(), "Output:")
	})
}

// ofExported reports whether fn is a function, or a method of an exported type.
func ofExported(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}
