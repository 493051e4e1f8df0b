package zk_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	zk "github.com/zkgo/zkgo/server/zktest/gozk/zk"
)

// TestSuite is like a test for the client's own harness: only its import is zkgo's.
func TestSuite(t *testing.T) {
	t.Parallel()
	ts, err := zk.StartTestCluster(t, 3, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ts.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c, events, err := ts.ConnectWithOptions(15*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	if _, err := c.Create("/a", []byte("1"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for i := range ts.Servers {
		if err := ts.Servers[i].Srv.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := ts.Servers[i].Srv.Start(); err != nil {
			t.Fatal(err)
		}
		if err := ts.StartAllServers(); err != nil {
			t.Fatal(err)
		}
		for late := time.Now().Add(30 * time.Second); ; { // the client finds another server
			data, _, err := c.Get("/a")
			if err == nil && string(data) == "1" {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%q %v", data, err)
			}
		}
	}
	if err := ts.StopAllServers(); err != nil {
		t.Error(err)
	}
	if slices.Contains(zk.FLWRuok([]string{c.Server()}, time.Second), true) {
		t.Error("a server answers after StopAllServers")
	}
}

// TestNames checks that the package has every name of the client.
func TestNames(t *testing.T) {
	t.Parallel()
	names := func(pkg string) (list []string) {
		out, err := exec.CommandContext(t.Context(), "go", "doc", "-short", pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, line := range strings.Split(string(out), "\n") {
			if f := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" (", r) }); len(f) > 1 && f[0] != "const" && f[0] != "var" {
				list = append(list, f[1])
			}
		}
		return list
	}
	source, err := exec.CommandContext(t.Context(), "go", "doc", "-all", "github.com/zkgo/zkgo/server/zktest/gozk/zk").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, source)
	}
	theirs := names("github.com/go-zookeeper/zk")
	if len(theirs) < 30 {
		t.Fatalf("the client has only the names %q", theirs)
	}
	for _, name := range theirs {
		if !strings.Contains(string(source), " "+name+" ") && !strings.Contains(string(source), "\t"+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
}
