package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	command := &Command{Name: "count", Options: []Option{
		{Name: "s"}, {Name: "w"}, {Name: "v", Arg: "n"}, {Name: "members", Arg: "list"}, {Name: "n", Arg: "x", Group: "g", Help: "one"}, {Name: "b", Group: "g", Help: "two"},
	}}
	for line, want := range map[string]string{
		"/a -s":           "[/a] map[s:[]]",
		"-sw /a":          "[/a] map[s:[] w:[]]",
		"-v 3 /a":         "[/a] map[v:[3]]",
		"-v3 /a":          "[/a] map[v:[3]]",
		"-v=3 /a":         "[/a] map[v:[3]]",
		"-sv 3 /a":        "[/a] map[s:[] v:[3]]",
		"-v -1 /a":        "[/a] map[v:[-1]]",
		"-members a,b -s": "[] map[members:[a,b] s:[]]",
		"-- -s":           "[-s] map[]",
		"-":               "[-] map[]",
		"-x":              "Unrecognized option: -x",
		"-membres a":      "Unrecognized option: -membres. Did you mean -members? See: help count",
		"-s -h":           "help requested",
		"--help":          "help requested",
		"-v -h":           "[] map[v:[-h]]",
		"-- -h":           "[-h] map[]",
		"-sx":             "Unrecognized option: -sx",
		"--s":             "Unrecognized option: --s",
		"-5":              "Unrecognized option: -5",
		"-v":              "Missing argument for option: v",
		"-v -s":           "Missing argument for option: v",
		"-v -x":           "[] map[v:[-x]]",
		"-n 1 -b":         "The option 'b' was specified but an option from this group has already been selected: 'n'",
	} {
		p, err := parseOptions(command, strings.Fields(line))
		var got string
		if err != nil {
			got = err.Error()
		} else {
			rest, found := p.args, p.found
			got = "[" + strings.Join(rest, " ") + "] map["
			for i, name := range slices.Sorted(maps.Keys(found)) {
				if i > 0 {
					got += " "
				}
				got += name + ":[" + strings.Join(found[name], " ") + "]"
			}
			got += "]"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	command.Required = "g"
	if _, err := parseOptions(command, nil); err == nil || err.Error() != "Missing required option: [-n one, -b two]" {
		t.Errorf("without a required option: %v", err)
	}
}

func TestCheckPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "", "/a/b": "", "/a/.b/..c/d.": "", "/grüße": "",
		"":              "Path length must be > 0",
		"a":             "Path must start with / character",
		"/a/":           "Path must not end with / character",
		"/a//b":         `Invalid path string "/a//b" caused by empty node name specified @3`,
		"/a/./b":        `Invalid path string "/a/./b" caused by relative paths not allowed @3`,
		"/..":           `Invalid path string "/.." caused by relative paths not allowed @2`,
		"/a\x01":        "Invalid path string \"/a\x01\" caused by invalid character @2",
		"/ü\x00":        "Invalid path string \"/ü\x00\" caused by null character not allowed @2",
		"/a/\U0001F600": "Invalid path string \"/a/\U0001F600\" caused by invalid character @3",
	} {
		got := ""
		if err := checkPath(path); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}

func TestTrack(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"count=2,bytes=5": "count=2,bytes=5",
		"count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=6": "count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=6",
		"": "count=-1,bytes=-1", "count=": "count=-1,bytes=-1",
	} {
		got, err := parseTrack(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
	if _, err := parseTrack("count=many"); err == nil {
		t.Error("a count that is no number was taken")
	}
}

func TestHexDump(t *testing.T) {
	t.Parallel()
	const want = `         +-------------------------------------------------+
         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |
+--------+-------------------------------------------------+----------------+
|00000000| 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66 |0123456789abcdef|
|00000010| 20 67 c3 bc 7e 7f                               | g..~.          |
+--------+-------------------------------------------------+----------------+`
	if got := hexDump([]byte("0123456789abcdef gü~\x7f")); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := hexDump(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// TestDeclarations checks the fields of every command that help and completion need.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	all := Commands()
	for i, c := range all {
		if c.Name == "" || c.Short == "" || c.Run == nil {
			t.Errorf("%q: %+v", c.Name, c)
		}
		if i > 0 && all[i-1].Name >= c.Name {
			t.Errorf("%q is there twice, or after %q", c.Name, all[i-1].Name)
		}
		for _, o := range c.Options {
			if o.Help == "" {
				t.Errorf("%s -%s has no help", c.Name, o.Name)
			}
		}
	}
}
