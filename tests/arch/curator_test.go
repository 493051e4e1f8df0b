package arch

import (
	"archive/zip"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// docs/guide/curator.md should name our equivalent of every public class of Curator.
// testdata/curator.txt lists the classes in Curator's jars:
//
//	go test ./tests/arch -run Curator -args -record "$(ls curator-{framework,recipes,x-discovery,x-async}-*.jar)"
var record = flag.String("record", "", "jars of Curator, from which to write testdata/curator.txt")

const curatorClasses = "testdata/curator.txt"

// recordCurator writes the list: the jar's part of Curator, and the class.
func recordCurator(t *testing.T) {
	t.Helper()
	var lines []string
	for _, jar := range strings.Fields(*record) {
		part := regexp.MustCompile(`^curator-(.*)-([0-9.]+)\.jar$`).FindStringSubmatch(filepath.Base(jar))
		if part == nil {
			t.Fatalf("%s is not curator-PART-VERSION.jar", jar)
		}
		archive := must.Get(zip.OpenReader(jar))(t)
		defer archive.Close()
		for _, f := range archive.File {
			name, class := strings.CutSuffix(f.Name, ".class")
			if !class || !strings.HasPrefix(name, "org/apache/curator/") {
				continue
			}
			public, err := isPublic(f)
			if err != nil {
				t.Fatalf("%s: %s: %v", jar, f.Name, err)
			}
			if public {
				lines = append(lines, part[1]+" "+strings.NewReplacer("/", ".", "$", ".").Replace(name))
			}
		}
	}
	slices.Sort(lines)
	must.Do(t, os.WriteFile(curatorClasses, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// A row of docs/guide/curator.md: classes, and our equivalents.
type row struct{ part, classes, here string }

// curatorRows reads the tables of docs/guide/curator.md. A heading is a part of Curator.
func curatorRows(t *testing.T) []row {
	t.Helper()
	text := must.Get(os.ReadFile("../../docs/guide/curator.md"))(t)
	var rows []row
	part := ""
	for line := range strings.Lines(string(text)) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			part = strings.ToLower(strings.TrimSpace(heading))
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.HasPrefix(line, "|`") && len(cells) == 2 {
			rows = append(rows, row{part, cells[0], cells[1]})
		}
	}
	return rows
}

var quoted = regexp.MustCompile("`([^`]*)`")

// names returns the texts between backquotes.
func names(cell string) (list []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// TestCuratorIsAnswered compares docs/guide/curator.md with the classes of Curator: the page should
// name every class, and no class that doesn't exist. Names may have "…" for any characters;
// "package.*" means all classes in the package; a nested class goes with its outer.
func TestCuratorIsAnswered(t *testing.T) {
	if *record != "" {
		recordCurator(t)
	}
	text := must.Get(os.ReadFile(curatorClasses))(t)
	patterns := make(map[string][]*regexp.Regexp) // by part
	used := make(map[*regexp.Regexp]bool)
	for _, r := range curatorRows(t) {
		for _, name := range names(r.classes) {
			p := regexp.QuoteMeta(name)
			if pkg, all := strings.CutSuffix(name, ".*"); all {
				p = `.*\.` + regexp.QuoteMeta(pkg) + `\.[A-Z].*`
			} else {
				p = `.*\.` + strings.ReplaceAll(p, "…", `\w*`) + `(\.\w+)*`
			}
			patterns[r.part] = append(patterns[r.part], regexp.MustCompile("^"+p+"$"))
		}
	}
	missing := 0
	for line := range strings.Lines(string(text)) {
		part, class, _ := strings.Cut(strings.TrimSpace(line), " ")
		known := false
		for _, p := range patterns[part] {
			if p.MatchString(class) {
				known, used[p] = true, true
			}
		}
		if !known {
			missing++
			t.Errorf("docs/guide/curator.md does not say what became of %s (%s)", class, part)
		}
	}
	for part, list := range patterns {
		for _, p := range list {
			if !used[p] && part != "kazoo" {
				t.Errorf("docs/guide/curator.md names %s, which Curator's %s has not", p, part)
			}
		}
	}
	t.Logf("%d classes, %d not answered", strings.Count(string(text), "\n"), missing)
}

// TestCuratorsAnswersExist checks that every name in the second column exists in the
// source.
func TestCuratorsAnswersExist(t *testing.T) {
	known := exported(t)
	goName := regexp.MustCompile(`^([a-z]\w*\.)?[A-Z]\w*(\.[A-Z]\w*)?$`)
	looked := 0
	for _, r := range curatorRows(t) {
		pkg := map[string]string{"framework": "client", "x-async": "client", "x-discovery": "discovery"}[r.part]
		for _, name := range names(r.here) {
			if dir, is := strings.CutPrefix(name, "recipes/"); is {
				if known[dir] == nil {
					t.Errorf("docs/guide/curator.md: there is no package %s", name)
				}
				continue
			}
			if !goName.MatchString(name) {
				continue
			}
			if first, rest, ok := strings.Cut(name, "."); ok && first == strings.ToLower(first) {
				pkg, name = first, rest // and the package of the next names in the row
			}
			looked++
			if !known[pkg][name] && !known["client"][name] {
				t.Errorf("docs/guide/curator.md: there is no %s.%s", pkg, name)
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d names were looked up", looked)
	}
}

// exported returns the exported names of the client and the recipes by package:
// of types, functions, constants and variables, and of methods and fields with and
// without their type.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	known := make(map[string]map[string]bool)
	for _, f := range sources(t) {
		if f.test || f.pkg != "client" && !strings.HasPrefix(f.pkg, "recipes") {
			continue
		}
		tree := must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join("../..", f.path), nil, parser.SkipObjectResolution))(t)
		pkg := tree.Name.Name
		if known[pkg] == nil {
			known[pkg] = make(map[string]bool)
		}
		for _, d := range tree.Decls {
			for _, name := range declared(d) {
				known[pkg][name] = true
			}
		}
	}
	return known
}

func declared(d ast.Decl) (list []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		list = append(list, d.Name.Name)
		if d.Recv != nil {
			list = append(list, receiver(d.Recv.List[0].Type)+"."+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				list = append(list, s.Name.Name)
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, f := range st.Fields.List {
						for _, n := range f.Names {
							list = append(list, s.Name.Name+"."+n.Name)
						}
					}
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					list = append(list, n.Name)
				}
			}
		}
	}
	return list
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	}
	return fmt.Sprint(e)
}
