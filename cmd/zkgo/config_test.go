package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "zoo.cfg")
	data := filepath.ToSlash(t.TempDir())
	write := func(text string) {
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "dataDir=/data\n", "dataDir="+data+"\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("dataDir=/data\nclientPort=2181\ntickTime=500\n")
	out, _, err := zkgo(t, "config", "check", name)
	if err != nil || !strings.Contains(out, "A server that stands alone") || !strings.Contains(out, name+":3") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = zkgo(t, "config", "show", name, "--only-set", "--set", "snapCount=5", "--client-port", "2182", "--data-dir", "/other")
	want := []string{"clientPort = 2182 (--client-port)", "tickTime = 500 (" + name + ":3)", "dataDir = /other (--data-dir)", "snapCount = 5 (--set)"}
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = zkgo(t, "config", "show", "-o", "json")
	var list []struct{ Key, Value, Origin string }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list) < 100 || list[0].Key != "clientPort" || list[0].Origin != "default" {
		t.Errorf("%v\n%.200s", err, out)
	}

	write("dataDir=/data\nclientPort=2181\ntikTime=500\n")
	if out, _, err = zkgo(t, "config", "check", name); err != nil || !strings.Contains(out, "did you mean tickTime?") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, refused := range []struct{ text, want string }{
		{"dataDir=/data\nclientPort=2181\ntikTime=500\n", "1 warnings"},
		{"dataDir=/data\nclientPort=x\n", name + ":2: clientPort: expected a port number"},
		{"dataDir=/data\nsecureClientPort=2281\n", "the server would refuse it: ssl.keyStore.location is not set"},
	} {
		write(refused.text)
		if _, _, err := zkgo(t, "config", "check", "--strict", name); err == nil || !strings.Contains(err.Error(), refused.want) {
			t.Errorf("%q: %v", refused.text, err)
		}
	}
	if _, _, err := zkgo(t, "config", "show", "-o", "yaml"); err == nil {
		t.Error("yaml is taken")
	}
}
