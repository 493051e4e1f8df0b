package takeover

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/tools"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// talker is a client in another language that prints a line on request.
type talker struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Scanner
	done  func() error
}

func talk(t *testing.T, command ...string) *talker {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stderr = new(bytes.Buffer)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Log(cmd.Stderr)
		}
	})
	return &talker{t, in, bufio.NewScanner(out), func() error { _ = in.Close(); return cmd.Wait() }}
}

// says returns the next line.
func (k *talker) says() string {
	k.t.Helper()
	if !k.lines.Scan() {
		k.t.Fatal("the client has ended")
	}
	return k.lines.Text()
}

// asked returns the answer to a line.
func (k *talker) asked() string {
	k.t.Helper()
	must.Get(io.WriteString(k.in, "\n"))(k.t)
	return k.says()
}

// TestOtherClients: the C client and Curator keep their sessions, ephemeral znodes, watches, mutex
// and leadership, on the way over and back.
func TestOtherClients(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	addrs := strings.Join(r.addrs(), ",")
	holder := filepath.Join(t.TempDir(), "holder")
	if out, err := exec.CommandContext(t.Context(), "gcc", "-DTHREADED", "-o", holder, "testdata/holder.c", "-lzookeeper_mt", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("this test needs gcc and libzookeeper-mt-dev: %v\n%s", err, out)
	}
	// The C library goes two addresses further after a failed connection (ZOOKEEPER-2466), so it would
	// never try half of an even number. With one listed twice it tries all.
	c := talk(t, holder, addrs+","+r.addrs()[0])
	j := talk(t, append(tools.Find(t).Java(t, "testdata/Holder.java"), addrs)...)
	sessions := [2]string{strings.TrimPrefix(c.says(), "holds "), strings.TrimPrefix(j.says(), "holds ")}
	l := startLoad(t, r.addrs())
	r.launch()
	stage := func(name string, watches int) {
		t.Helper()
		if got, want := c.asked(), fmt.Sprintf("still %s %[1]s %d", sessions[0], min(watches, 1)); got != want {
			t.Errorf("%s: C says %q, want %q", name, got, want)
		}
		if got, want := j.asked(), fmt.Sprintf("still %s %[1]s %[1]s true true %d", sessions[1], 1+watches); got != want {
			t.Errorf("%s: Curator says %q, want %q", name, got, want)
		}
	}
	change := func() {
		t.Helper()
		for _, path := range []string{"/c-watched", "/curator/cached"} {
			must.Do(t, wait.Success(patience, "a write", func() error { _, err := l.people[0].Set(path, []byte("new"), -1); return err }))
		}
	}
	stage("before", 0)
	must.Do(t, r.cutover())
	stage("after the cutover", 0)
	change()
	stage("after a change", 1)
	back(t, r, l)
	stage("after the way back", 1)
	for _, k := range []*talker{c, j} {
		must.Do(t, k.done())
	}
}

// TestKazoo: the locks and znodes of a Kazoo session survive the cutover, the death of each zkgo
// server, and the rollback.
func TestKazoo(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	l := startLoad(t, r.addrs())
	root := must.Get(process.Root())(t)
	k := talk(t, tools.Find(t).Python, filepath.Join(root, "tests/compat/interop/reattach/reattach.py"), strings.Join(r.addrs(), ","))
	r.launch()
	steps := []func(){
		func() { must.Do(t, r.cutover()) },
		func() {
			for _, s := range r.new {
				s.kill()
				s.launch()
			}
		},
		func() { back(t, r, l) },
	}
	for k.lines.Scan() {
		switch line := k.lines.Text(); {
		case line == "restart":
			steps[0]()
			steps = steps[1:]
			must.Get(io.WriteString(k.in, "\n"))(t)
		case strings.HasPrefix(line, "FAIL"):
			t.Error(line)
		}
	}
	if err := k.done(); err != nil || len(steps) > 0 {
		t.Errorf("%v, %d steps left", err, len(steps))
	}
}
