package clitools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// patience bounds every wait; the tests measure no times.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// need skips the test unless the environment asks for the real ZooKeeper.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("ZKGO_REQUIRE") != "1" || os.Getenv("ZKGO_LIVE") != "1" {
		t.Skip("runs the real ZooKeeper: ZKGO_REQUIRE=1 ZKGO_LIVE=1")
	}
	oracle.Need(t)
}

// side is one of the two servers, with a session that owns ephemeral znodes.
type side struct {
	name, addr, admin string
	zk                *client.Client
}

// pair starts both servers and fills them.
func pair(t *testing.T) []*side {
	t.Helper()
	ports := must.Get(oracle.FreePorts(2))(t)
	config := func(port int) []string {
		return []string{"extendedTypesEnabled=true", "4lw.commands.whitelist=*", "admin.enableServer=true", "admin.serverAddress=127.0.0.1", fmt.Sprintf("admin.serverPort=%d", port)}
	}
	theirs := oracle.Start(t, oracle.Options{Config: config(ports[0])})
	var args []string
	for _, line := range config(ports[1]) {
		args = append(args, "--set", line)
	}
	ours := process.Start(t, t.TempDir(), args...)
	sides := []*side{
		{name: "ZooKeeper", addr: theirs.Addr(), admin: fmt.Sprint(ports[0])},
		{name: "zkgo", addr: ours.Addr, admin: fmt.Sprint(ports[1])},
	}
	for _, s := range sides {
		s.connect(t)
		s.fill(t)
	}
	return sides
}

func (s *side) connect(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	if s.zk, err = client.Connect(ctx, s.addr, client.WithSessionTimeout(40*time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.zk.Close() })
}

// Numbers of znodes in /large, in /app/many, elsewhere in /app, and of ephemeral znodes.
const (
	large      = 10_000
	many       = 100
	others     = 18
	ephemerals = 1
)

// fill creates the tree.
func (s *side) fill(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	owner := client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "digest", ID: "ann:hDFGu+eFIkzLxUk7RpZcnjyO2LM="}}
	ip := client.ACL{Perms: client.PermRead | client.PermWrite, ID: client.ID{Scheme: "ip", ID: "127.0.0.1"}}
	all := client.WorldACL(client.PermAll)
	for _, n := range []struct {
		path string
		data []byte
		opts []client.CreateOption
	}{
		{"/app", nil, nil},
		{"/app/big", bytes.Repeat([]byte("0123456789abcdef"), 65_000), nil}, // 1,040,000 bytes, near jute.maxbuffer
		{"/app/binary", []byte{0, 1, 2, 0xff, 0xfe, '\n', 0x7f}, nil},
		{"/app/box", []byte("container"), []client.CreateOption{client.Container}},
		{"/app/box/child", nil, nil},
		{"/app/empty", []byte{}, nil},
		{"/app/live", []byte("me"), []client.CreateOption{client.Ephemeral}},
		{"/app/many", nil, nil},
		{"/app/named", []byte("acl"), []client.CreateOption{client.WithACL(append(all, owner, ip)...)}},
		{"/app/null", nil, nil},
		{"/app/q", nil, nil},
		{"/app/q/n-", []byte("first"), []client.CreateOption{client.Sequential}},
		{"/app/q/n-", []byte("second"), []client.CreateOption{client.Sequential}},
		{"/app/read-only", []byte("r"), []client.CreateOption{client.WithACL(client.WorldACL(client.PermRead)...)}},
		{"/app/text", []byte("  lines\n\twith \"quotes\" and blanks \n\n"), nil},
		{"/app/ttl", []byte("an hour"), []client.CreateOption{client.WithTTL(time.Hour)}},
		{"/app/ünïcode ☃", []byte("☃ 雪"), nil},
	} {
		if _, err := s.zk.Create(ctx, n.path, n.data, n.opts...); err != nil {
			t.Fatalf("%s: %s: %v", s.name, n.path, err)
		}
	}
	for i := 0; i < large; {
		var ops []client.Op
		if i == 0 {
			ops = append(ops, client.CreateOp("/large", nil))
		}
		for range 1000 {
			data := fmt.Appendf(nil, "value %d", i)
			if i < many {
				ops = append(ops, client.CreateOp(fmt.Sprintf("/app/many/%05d", i), data))
			}
			ops = append(ops, client.CreateOp(fmt.Sprintf("/large/%05d", i), data))
			i++
		}
		if _, err := s.zk.Multi(ctx, ops...); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	must.Get(s.zk.Create(ctx, "/app/many/00000/deep", []byte("x")))(t)
}

// result is the result of a command.
type result struct {
	out, err string
	code     int
}

// run runs zkgo cli with a command.
func (s *side) run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return command(t, stdin, append([]string{"-q", "-server", s.addr}, args...)...)
}

func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, process.Binary(t), append([]string{"cli"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", args, err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// Patterns of what differs between any two servers.
var (
	hexNumber = regexp.MustCompile(`0x[0-9a-f]+`)
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// normal removes from a result what differs between any two servers.
func (r result) normal(s *side) result {
	clean := func(text string) string {
		text = strings.ReplaceAll(text, s.addr, "SERVER")
		text = hexNumber.ReplaceAllString(text, "HEX")
		return timestamp.ReplaceAllString(text, "TIME")
	}
	return result{clean(r.out), clean(r.err), r.code}
}

// same runs a command on both servers and compares the results. It returns the first one.
func same(t *testing.T, sides []*side, args ...string) result {
	t.Helper()
	want := sides[0].run(t, "", args...)
	got := sides[1].run(t, "", args...)
	if want.normal(sides[0]) != got.normal(sides[1]) {
		t.Errorf("%q\non ZooKeeper %d:\n%s%s\non zkgo %d:\n%s%s", args,
			want.code, shorten(want.out), want.err, got.code, shorten(got.out), got.err)
	}
	return want
}

// ok is same for a command that must not fail.
func ok(t *testing.T, sides []*side, args ...string) string {
	t.Helper()
	r := same(t, sides, args...)
	if r.code != 0 {
		t.Errorf("%q: exit code %d: %s", args, r.code, r.err)
	}
	return r.out
}

func shorten(text string) string {
	if len(text) > 3000 {
		return text[:1500] + "\n…\n" + text[len(text)-1500:]
	}
	return text
}
