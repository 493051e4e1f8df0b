package subtree_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// ambiguous returns texts that, written plain, some YAML 1.1 or 1.2 parser would
// reject or read as something other than the same string.
func ambiguous() []string {
	list := []string{
		"", "=", "<<", "~", "0123", "017", "0o17", "0x1f", "0b1", "1_000", "12", "-1", "+1", "1e3", "1.5", ".5", "1.", "-.5",
		"6.02e+23", ".inf", "-.inf", ".Inf", ".nan", ".NaN", "12:30:45", "1:2", "190:20:30.15", "2026-11-26", "2001-12-14t21:59:43.10-05:00",
		"2001-12-14 21:59:43.10 -5", " leading", "trailing ", "  ", "- item", "-", "--", "---", "...", "--- text", "a: b", "a:", ": b", ":", "a :b", "a #b",
		"#b", "? key", "?", "%TAG", "@at", "`tick`", "&anchor", "*alias", "!tag", "!!str x", "|", ">", "|-", "'single'", `"double"`, `\`, `a\nb`,
		"[a]", "{a: b}", "a, b", "[", "]", "{", "}", ",", "a\tb", "\t", "\ta", "a\t", "\n", "a\n", "a\n\n", "\na", " a\nb", "a \nb", "a\n b\n", "a\n\tb",
		"a\nb", "a\nb\n", "a\n\nb", "# a\nb", "---\na", "a\n---\nb\n", "a\r\nb", "\r", "a\x00b", "\x07", "\x1b[0m", "\x7f", "\u0080", "\u0085", "a\u0085b",
		"\u00a0", "\u2028", "a\u2029b", "\ufeff", "\ufeffa", "a\ufeff", "\ufffd", "\u200b", "é", "☃", "😀", "\xff\xfe", "a: \"b\"\n", "{\n  \"a\": [1, 2]\n}\n",
	}
	for _, word := range []string{"null", "yes", "no", "on", "off", "y", "n", "true", "false"} {
		list = append(list, word, strings.ToUpper(word), strings.ToUpper(word[:1])+word[1:])
	}
	return list
}

// texts returns znodes with the ambiguous texts as data, in ACLs and, if valid in a
// path, as names.
func texts() (subtree.Source, map[string]string) {
	want := make(map[string]string)
	nodes := []*subtree.Node{{ACL: client.WorldACL(client.PermAll)}}
	for i, s := range ambiguous() {
		n := &subtree.Node{Path: fmt.Sprintf("/%04d", i), Data: []byte(s)}
		n.ACL = []client.ACL{{Perms: client.PermRead, ID: client.ID{Scheme: "sasl", ID: s}}}
		nodes, want[n.Path] = append(nodes, n), s
	}
	for i, s := range []string{"=", "~", " ", "a: b", "a #b", "a:", "'", "\u2028", "\u2029", "\ufeff", "\u00a0", "☃"} {
		n := &subtree.Node{Path: fmt.Sprintf("/9%03d%s", i, s), Data: []byte("x"), ACL: client.WorldACL(client.PermAll)}
		nodes, want[n.Path] = append(nodes, n), "x"
	}
	return func(context.Context) iter.Seq2[*subtree.Node, error] {
		return func(yield func(*subtree.Node, error) bool) {
			for _, n := range nodes {
				if !yield(n, nil) {
					return
				}
			}
		}
	}, want
}

// TestYAMLTexts checks that every text is read back unchanged, and that no line of
// the file has a plain scalar that a parser could misread.
func TestYAMLTexts(t *testing.T) {
	t.Parallel()
	src, _ := texts()
	file := export(t, src, subtree.ExportOptions{Format: subtree.YAML, Root: "/= #x"})
	doc, err := subtree.Read(strings.NewReader(file))
	if err != nil || doc.Root != "/= #x" {
		t.Fatalf("%+v, %v", doc, err)
	}
	same(t, src, doc.Source())
	unsafe := make(map[string]bool)
	for _, s := range ambiguous() {
		unsafe[s] = true
	}
	for line := range strings.Lines(file) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsAny(line, "\u2028\u2029\ufeff\u0085\t") {
			t.Errorf("not escaped: %q", line)
		}
		key, value, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
		switch key {
		case "root:", "path:", "data:", "base64:", "-":
			if unsafe[value] && !strings.HasPrefix(value, `"`) && !strings.HasPrefix(value, "'") && value != "|" && value != "|-" {
				t.Errorf("not quoted: %q", line)
			}
		}
	}
	for _, want := range []string{`data: "="`, `data: "<<"`, `data: "12:30:45"`, `data: "2026-11-26"`, `data: "off"`, `root: "/= #x"`, `data: ""`, `data: '"double"'`, "data: |\n    a\n    b\n"} {
		if !strings.Contains(file, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(export(t, src, subtree.ExportOptions{Format: subtree.YAML, Root: "/app/some-name"}), `"/app/some-name"`) {
		t.Error("a plain path is quoted")
	}
}

// TestPyYAML checks that PyYAML's safe loader reads the same texts from an export.
func TestPyYAML(t *testing.T) {
	t.Parallel()
	// Debian's package belongs to Debian's Python, which may not be the first in
	// PATH.
	pythons := []string{"python3", "/usr/bin/python3"}
	i := slices.IndexFunc(pythons, func(python string) bool {
		return exec.CommandContext(t.Context(), python, "-c", "import yaml").Run() == nil
	})
	if i < 0 {
		t.Skip("no python3 has the module yaml: apt install python3-yaml")
	}
	const program = `
import base64, json, sys, yaml
out = {}
for doc in yaml.safe_load_all(sys.stdin.buffer):
    if "path" not in doc: continue
    for text in [doc["path"], doc.get("data", "")] + doc.get("acl", []):
        assert isinstance(text, (str, bytes)), doc
    if "data" in doc: out[doc["path"]] = base64.b64encode(doc["data"].encode()).decode()
    if "base64" in doc: out[doc["path"]] = doc["base64"]
print(json.dumps(out))
`
	src, want := texts()
	cmd := exec.CommandContext(t.Context(), pythons[i], "-c", program)
	cmd.Stdin = strings.NewReader(export(t, src, subtree.ExportOptions{Format: subtree.YAML, Root: "/"}))
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &problems)
	}
	var got map[string][]byte
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for path, data := range want {
		if string(got[path]) != data {
			t.Errorf("%q: PyYAML reads %q, want %q", path, got[path], data)
		}
	}
}
