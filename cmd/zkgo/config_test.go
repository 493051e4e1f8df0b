package main

import (
	"encoding/json"
	"net"
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
	if err != nil || !strings.Contains(out, "A standalone server") || !strings.Contains(out, name+":3") {
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
		{"dataDir=/data\nsecureClientPort=2281\n", "the server would refuse it: ssl.keyStore.location is not set: a port with TLS needs a certificate; set it in zoo.cfg, with --set, or as -Dzookeeper.ssl.keyStore.location in SERVER_JVMFLAGS"},
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

// foreign is an address for documentation, which no machine has.
const foreign = "203.0.113.7"

// needForeign skips a test on a machine that listens on addresses that it doesn't have.
func needForeign(t *testing.T) {
	t.Helper()
	if l, err := net.Listen("tcp", net.JoinHostPort(foreign, "0")); err == nil {
		l.Close()
		t.Skip("this machine listens on addresses that it doesn't have")
	}
}

// TestForeignAddress checks a file with an address that doesn't exist here: config check should
// warn, and the server should name the setting instead of advising another port.
func TestForeignAddress(t *testing.T) {
	t.Parallel()
	needForeign(t)
	const three = "initLimit=5\nsyncLimit=2\nserver.2=127.0.0.1:28882:28883\nserver.3=127.0.0.1:28884:28885\nserver.1="
	for _, c := range []struct{ name, lines, want string }{
		{"clientPortAddress", "clientPort=0\nclientPortAddress=" + foreign + "\n", "clientPortAddress: " + foreign + " is not an address of this machine"},
		{"a name", "clientPort=0\nclientPortAddress=nosuch.invalid\n", "clientPortAddress: the name nosuch.invalid does not resolve"},
		{"the own line", "clientPort=0\n" + three + foreign + ":28880:28881\n", "server.1: " + foreign + " is not an address of this machine"},
		{"clients in the own line", three + "127.0.0.1:28880:28881;" + foreign + ":24193\n", "server.1 (address for clients): " + foreign + " is not an address of this machine"},
		{"the AdminServer", "clientPort=0\nadmin.serverPort=28886\nadmin.serverAddress=" + foreign + "\n", "admin.serverAddress: " + foreign + " is not an address of this machine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			name := filepath.Join(data, "zoo.cfg")
			text := "dataDir=" + filepath.ToSlash(data) + "\n" + c.lines
			if !strings.Contains(text, "admin.") {
				text += "admin.enableServer=false\n"
			}
			for file, text := range map[string]string{name: text, filepath.Join(data, "myid"): "1"} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out, _, err := zkgo(t, "config", "check", name); err != nil || !strings.Contains(out, "Warnings:\n  "+c.want) {
				t.Errorf("%v\n%s", err, out)
			}
			out, _, err := zkgo(t, "config", "check", "-o", "json", name)
			var check struct{ Warnings []string }
			if err != nil || json.Unmarshal([]byte(out), &check) != nil || len(check.Warnings) != 1 || !strings.HasPrefix(check.Warnings[0], c.want) {
				t.Errorf("%v, %q", err, check.Warnings)
			}
			if _, _, err := zkgo(t, "config", "check", "--strict", name); err == nil || err.Error() != "1 warnings" {
				t.Errorf("strict: %v", err)
			}
			_, _, err = zkgo(t, "server", name)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "another port") {
				t.Errorf("server: %v", err)
			}
		})
	}
}
