package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// mostNames limits the public API, i.e. the exported constants, variables, functions and
// types of all packages that other modules can import. We count a group of constants or
// variables once, like the list of go doc -short. A type that is another module's, under its
// own name, is no name of ours.
const mostNames = 550

// isInternal reports whether other modules can't import a package.
func isInternal(pkg string) bool { return slices.Contains(strings.Split(pkg, "/"), "internal") }

// api contains the parts of one package's exported declarations that the rules check.
type api struct {
	names    int
	mentions map[string][]string // types of internal packages, by the declaration that mentions them
}

// TestPublicAPI checks the size of the public API, and that an embedding program can name
// every type in it.
func TestPublicAPI(t *testing.T) {
	t.Parallel()
	total := 0
	for pkg, a := range publicAPI(t) {
		total += a.names
		for decl, types := range a.mentions {
			t.Errorf("%s.%s mentions %s, which no other module can import", pkg, decl, strings.Join(types, ", "))
		}
	}
	if total > mostNames {
		t.Errorf("%d public names, more than %d: unexport what only this module uses", total, mostNames)
	}
	if total < mostNames/2 {
		t.Fatalf("only %d public names: this test does not see the module", total)
	}
}

// publicAPI reads the packages that other modules can import.
func publicAPI(t *testing.T) map[string]api {
	t.Helper()
	pkgs := map[string]api{}
	must.Do(t, filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("../..", p)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		if d.IsDir() {
			if isInternal(pkg) || slices.Contains([]string{"cmd", "tests", "testdata", ".git"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		pkg = path.Dir(pkg)
		tree, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		a, ok := pkgs[pkg]
		if !ok {
			a.mentions = map[string][]string{}
		}
		a.add(tree)
		pkgs[pkg] = a
		return nil
	}))
	return pkgs
}

// add adds the exported declarations of one file.
func (a *api) add(tree *ast.File) {
	internal := map[string]bool{}
	for _, imp := range tree.Imports {
		p, _ := strconv.Unquote(imp.Path.Value)
		pkg, ours := strings.CutPrefix(p, module+"/")
		if !ours || !isInternal(pkg) {
			continue
		}
		name := path.Base(p)
		if imp.Name != nil {
			name = imp.Name.Name
		}
		internal[name] = true
	}
	foreign := foreignNames(tree)
	ast.FileExports(tree) // drops unexported fields and methods, too
	look := func(decl string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && internal[x.Name] {
				a.mentions[decl] = append(a.mentions[decl], fmt.Sprintf("%s.%s", x.Name, sel.Sel.Name))
			}
			return true
		})
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				a.names++
			}
			if ast.IsExported(funcName(d)) { // methods of unexported types don't count
				look(funcName(d), d.Type)
			}
		case *ast.GenDecl:
			a.addGroup(d, foreign, look)
		}
	}
}

// addGroup adds types, constants or variables. An alias gives an internal type a public
// name, and so does a type defined as an internal one, so they aren't looked into.
func (a *api) addGroup(d *ast.GenDecl, foreign map[string]bool, look func(decl string, n ast.Node)) {
	if d.Tok != token.TYPE && d.Tok != token.IMPORT && len(d.Specs) > 0 {
		a.names++
	}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if sel, is := s.Type.(*ast.SelectorExpr); is && s.Assign.IsValid() && sel.Sel.Name == s.Name.Name {
				if x, is := sel.X.(*ast.Ident); is && foreign[x.Name] {
					continue
				}
			}
			a.names++
			if _, named := s.Type.(*ast.SelectorExpr); !named {
				look(s.Name.Name, s.Type)
			}
		case *ast.ValueSpec:
			if s.Type != nil {
				look(s.Names[0].Name, s.Type)
			}
		}
	}
}

// foreignNames returns the names under which a file knows the packages of other modules.
func foreignNames(tree *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, imp := range tree.Imports {
		p, _ := strconv.Unquote(imp.Path.Value)
		first, _, _ := strings.Cut(p, "/")
		if strings.HasPrefix(p, module+"/") || !strings.Contains(first, ".") {
			continue
		}
		name := path.Base(p)
		if imp.Name != nil {
			name = imp.Name.Name
		}
		names[name] = true
	}
	return names
}
