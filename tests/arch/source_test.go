package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// file contains the parts of one Go file that the rules check.
type file struct {
	path     string // below the module's root
	pkg      string // folder below the module's root
	test     bool
	doc      bool // has a package comment
	synctest bool // runs in fake time, where sleeping costs nothing
	bubble   bool // has a helper that runs tests in fake time
	threads  bool // keeps a thread for itself
	lines    int
	imports  []string
	comments []comment
	messages []comment           // the string literals of three words or more
	funcs    map[string]int      // lines of each function, by receiver and name
	sleeps   map[string]struct{} // functions that call time.Sleep
	fields   map[string]int      // number of fields of each struct type
}

// comment is the text of one comment group, or of a literal, and its first line.
type comment struct {
	text string
	line int
}

// sources reads every Go file of the module.
func sources(t *testing.T) []file {
	t.Helper()
	root := must.Get(filepath.Abs("../.."))(t)
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the module's root: %v", err)
	}
	var files []file
	must.Do(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files = append(files, read(t, p, filepath.ToSlash(rel)))
		return nil
	}))
	return files
}

// read parses one file.
func read(t *testing.T, name, rel string) file {
	t.Helper()
	set := token.NewFileSet()
	tree := must.Get(parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
	f := file{
		path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), doc: tree.Doc != nil,
		lines: set.Position(tree.End()).Line, funcs: map[string]int{}, sleeps: map[string]struct{}{}, fields: fields(tree),
	}
	for _, imp := range tree.Imports {
		p := must.Get(strconv.Unquote(imp.Path.Value))(t)
		f.imports = append(f.imports, p)
		f.synctest = f.synctest || p == "testing/synctest"
	}
	for _, g := range tree.Comments {
		f.comments = append(f.comments, comment{g.Text(), set.Position(g.Pos()).Line})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.Count(l.Value, " ") > 1 {
			f.messages = append(f.messages, comment{l.Value, set.Position(l.Pos()).Line})
		}
		return true
	})
	for _, d := range tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		f.funcs[funcName(fn)] = set.Position(fn.End()).Line - set.Position(fn.Pos()).Line
		f.threads = f.threads || calls(fn, "runtime", "LockOSThread")
		if calls(fn, "time", "Sleep") {
			f.sleeps[fn.Name.Name] = struct{}{}
		}
		f.bubble = f.bubble || !strings.HasPrefix(fn.Name.Name, "Test") && calls(fn, "synctest", "Test") || calls(fn, "rig", "Run")
	}
	return f
}

// fields counts the fields of each struct type that a file declares. An embedded type is
// one field.
func fields(tree *ast.File) map[string]int {
	counts := map[string]int{}
	for _, d := range tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			t, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if st, ok := t.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					counts[t.Name.Name] += max(1, len(f.Names))
				}
			}
		}
	}
	return counts
}

// funcName is the name of the receiver's type, if any, and the function's name.
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	typ := fn.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
			continue
		case *ast.IndexExpr:
			typ = t.X
			continue
		case *ast.Ident:
			return t.Name + "." + fn.Name.Name
		}
		return fn.Name.Name
	}
}

// calls reports whether fn mentions a function of another package.
func calls(fn *ast.FuncDecl, pkg, name string) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && sel.Sel.Name == name {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && x.Name == pkg
		}
		return !found
	})
	return found
}
