package subtree_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
)

var formats = []subtree.Format{subtree.JSON, subtree.YAML}

// TestExportImport checks that an exported and imported subtree is equal, and that
// exporting it again produces the same file.
func TestExportImport(t *testing.T) {
	t.Parallel()
	_, a := run(t)
	n := kinds(t, a)
	for _, format := range formats {
		_, b := run(t)
		o := subtree.ExportOptions{Format: format, Root: "/app"}
		file := export(t, walk(a, "/app"), o)
		doc, err := subtree.Read(strings.NewReader(file))
		if err != nil || doc.Root != "/app" || doc.Count != n+1 || doc.Ephemerals != 1 {
			t.Fatalf("%s: %+v, %v", format, doc, err)
		}
		r, err := subtree.Apply(background(t), b, "/app", doc.Source(), subtree.ApplyOptions{})
		if err != nil || r.Created != n || r.Skipped != 1 {
			t.Fatalf("%s: %+v, %v", format, r, err)
		}
		same(t, walk(a, "/app"), walk(b, "/app"))
		same(t, doc.Source(), walk(b, "/app"))
		r, err = subtree.Apply(background(t), b, "/app", doc.Source(), subtree.ApplyOptions{Mode: subtree.Overwrite, Prune: true})
		if err != nil || r.Changed() {
			t.Fatalf("%s: a second import: %+v, %v", format, r, err)
		}
		if err := a.Delete(background(t), "/app/live", client.AnyVersion); err == nil {
			file = export(t, walk(a, "/app"), o)
		}
		if again := export(t, walk(b, "/app"), o); format == subtree.JSON && again != file {
			t.Errorf("%s: exported again:\n%s\nwas:\n%s", format, again, file)
		}
		if format == subtree.JSON {
			if _, err := a.Create(background(t), "/app/live", []byte("me"), client.Ephemeral); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestByteOrderMark checks that a byte order mark at the start of a file has no effect.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "", "/s/a": "one"})
	for _, format := range formats {
		file := export(t, walk(c, "/s"), subtree.ExportOptions{Format: format, Root: "/s"})
		doc, err := subtree.Read(strings.NewReader("\ufeff" + file))
		if err != nil || doc.Root != "/s" || doc.Count != 2 {
			t.Fatalf("%s: %+v, %v", format, doc, err)
		}
		same(t, doc.Source(), walk(c, "/s"))
	}
	if _, err := subtree.Read(strings.NewReader("\ufeff")); err == nil || err.Error() != "the file is empty" {
		t.Errorf("a mark alone: %v", err)
	}
}

// TestCutOff checks that no truncated file is accepted.
func TestCutOff(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "", "/s/a": "one", "/s/b": "two", "/s/b/c": "three"})
	for _, format := range formats {
		file := strings.TrimRight(export(t, walk(c, "/s"), subtree.ExportOptions{Format: format, Root: "/s"}), "\n")
		if _, err := subtree.Read(strings.NewReader(file)); err != nil {
			t.Fatal(err)
		}
		for n := range len(file) {
			if _, err := subtree.Read(strings.NewReader(file[:n])); err == nil {
				t.Errorf("%s: the first %d of %d bytes were taken", format, n, len(file))
			}
		}
	}
}

// TestHandWritten covers kinds of znode that servers don't reveal, any order, and
// literal texts.
func TestHandWritten(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	doc, err := subtree.Read(strings.NewReader(`# for the tests
format: zkgo-subtree
version: 1
---
path: /b
data: 0123
acl: ["world:anyone:r", "digest:u:abc=:cdrwa"]
---
path: /
---
path: /a
container: true
---
path: /a/t
ttl: 60000
data: yes
`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := background(t)
	if _, err := subtree.Apply(ctx, c, "/x/y", doc.Source(), subtree.ApplyOptions{Parents: true}); err != nil {
		t.Fatal(err)
	}
	if zs.Get("/x/y/b") != "0123" || zs.Get("/x/y/a/t") != "yes" {
		t.Error(zs.Dump())
	}
	if acl, _, err := c.GetACL(ctx, "/x/y/b"); err != nil || len(acl) != 2 || subtree.FormatACL(acl[1]) != "digest:u:x:cdrwa" {
		t.Errorf("the ACL is %v, %v", acl, err)
	}
	// A hidden ACL isn't exported as if it were complete.
	if _, err := subtree.Export(ctx, &strings.Builder{}, walk(c, "/x"), subtree.ExportOptions{Format: subtree.JSON}); err == nil || !strings.Contains(err.Error(), "/y/b") {
		t.Errorf("a blanked ACL was exported: %v", err)
	}
	zs.Advance(3 * time.Minute)
	zs.WaitGone("/x/y/a/t")
	zs.Advance(3 * time.Minute)
	zs.WaitGone("/x/y/a")
}

// TestBadFiles checks that each error describes the problem and its position.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	j := func(znodes string) string {
		return `{"format":"zkgo-subtree","version":1,"root":"/","znodes":[` + znodes + `]}`
	}
	for file, want := range map[string]string{
		"":                               "empty",
		`{"format":"other","znodes":[]}`: `"other"`,
		`{"format":"zkgo-subtree","version":2,"znodes":[]}`: "version is 2",
		j(``): "no znodes",
		j(`{"path":"/"},{"path":"/a"},{"path":"/a"}`):                             "duplicate znode /a",
		j(`{"path":"/"},{"path":"/b"},{"path":"/a"},{"path":"/b"}`):               "duplicate znode /b",
		j(`{"path":"/"},{"path":"/a/b"}`):                                         "/a/b has no parent",
		j(`{"path":"/a"}`):                                                        "/a: the root",
		j(`{"path":"/"},{"path":"a"}`):                                            `znode 2: path "a"`,
		j(`{"path":"/","data":"x","base64":"eA=="}`):                              "data twice",
		j(`{"path":"/","base64":"?"}`):                                            "base64",
		j(`{"path":"/","acl":["world"]}`):                                         `"world"`,
		j(`{"path":"/","acl":["world:anyone:x"]}`):                                "'x'",
		j(`{"path":"/","colour":"red"}`):                                          "colour",
		j(`{"path":"/","ttl":-1}`):                                                "time to live",
		j(`{"path":"/","ttl":1,"container":true}`):                                "only one of",
		j(`{"path":"/","ephemeral":"x"}`):                                         "session",
		j(`{"path":"/","ephemeral":"0x1"},{"path":"/a"}`):                         "ephemeral",
		j(`{"path":"/"}`) + "x":                                                   "after the end",
		`{"format":"zkgo-subtree","version":1,"znodes":[{"path":"/"}],"count":2}`: "want 2",
		"format: zkgo-subtree\nversion: 1\n---\npath: /\ncolour: red\n":           "colour",
		"format: zkgo-subtree\nversion: 1\n---\npath: /\n---\ncount: 2\n":         "want 2",
	} {
		if _, err := subtree.Read(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %q", file, err, want)
		}
	}
}

func TestACLText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"world:anyone:cdrwa", "digest:u:xyz=:r", "ip:::1:w", "x509:CN=a:b:", "auth::cdrwa"} {
		a, err := subtree.ParseACL(s)
		if err != nil || subtree.FormatACL(a) != s {
			t.Errorf("%s became %v, %s, %v", s, a, subtree.FormatACL(a), err)
		}
	}
}

// FuzzRead checks that no file causes a panic, and that an accepted file can be
// iterated over.
func FuzzRead(f *testing.F) {
	f.Add(`{"format":"zkgo-subtree","version":1,"root":"/","znodes":[{"path":"/"},{"path":"/a","base64":"eA=="}],"count":2}`)
	f.Add("format: zkgo-subtree\nversion: 1\n---\npath: /\ndata: x\n---\ncount: 1\n")
	f.Fuzz(func(t *testing.T, file string) {
		doc, err := subtree.Read(strings.NewReader(file))
		if err != nil {
			return
		}
		n := 0
		for _, err := range doc.Source()(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != doc.Count {
			t.Fatalf("%d znodes, and there were %d", n, doc.Count)
		}
	})
}
