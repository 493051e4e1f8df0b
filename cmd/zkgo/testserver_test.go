package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/control"
)

// roleVar makes the test binary act as another program: zkgo itself, or a parent that
// starts zkgo with the given arguments and stays alive.
const roleVar = "ZKGO_TEST_ROLE"

func play(role string) {
	if role == "zkgo" {
		main()
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleVar+"=zkgo")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if role == "parent with a pipe" {
		if _, err := cmd.StdinPipe(); err != nil { // the parent keeps it open
			panic(err)
		}
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	select {}
}

// readiness reads the line that reports that a test server is ready.
func readiness(t *testing.T, out *bufio.Reader) (ready control.Ready) {
	t.Helper()
	line, err := out.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &ready)
	}
	if err != nil || ready.ConnectString == "" || ready.Control == "" || ready.PID == 0 {
		t.Fatalf("%q, %v", line, err)
	}
	return ready
}

// post sends a request to an endpoint.
func post(t *testing.T, url, body string) string {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s", url, body, resp.Status, text)
	}
	return string(text)
}

// testserver is a zkgo testserver in this process, with a pipe as stdin.
type testserver struct {
	ready control.Ready
	stdin io.Closer
	out   *bufio.Reader
	log   lockedBuffer
	ended chan error
}

func runsTestserver(t *testing.T, args ...string) *testserver {
	t.Helper()
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout := io.Pipe()
	ts := &testserver{stdin: stdin, out: bufio.NewReader(out), ended: make(chan error, 1)}
	go func() {
		err := run(context.Background(), append([]string{"testserver"}, args...), in, stdout, &ts.log)
		stdout.CloseWithError(errors.Join(err, io.EOF))
		ts.ended <- err
		stdin.Close()
		in.Close()
	}()
	ts.ready = readiness(t, ts.out)
	return ts
}

// await waits for the end of the server and checks the reason in the log.
func (ts *testserver) await(t *testing.T, why string) {
	t.Helper()
	rest, _ := io.ReadAll(ts.out)
	if err := <-ts.ended; err != nil || len(rest) > 0 {
		t.Errorf("it ended with %v, and said more on stdout: %q", err, rest)
	}
	if !strings.Contains(ts.log.String(), why) {
		t.Errorf("the log does not say %q:\n%s", why, ts.log.String())
	}
}

func TestTestserverEndsWithStdin(t *testing.T) {
	t.Parallel()
	ts := runsTestserver(t, "--set", "maxSessionTimeout=7000", "--tick", "500ms")
	if ts.ready.PID != os.Getpid() {
		t.Errorf("pid %d", ts.ready.PID)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Connect(ctx, ts.ready.ConnectString, client.WithSessionTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.Session().Timeout; got != 7*time.Second {
		t.Errorf("the session lasts %v, not as --set says", got)
	}
	id := strconv.FormatInt(c.Session().ID, 10)
	post(t, ts.ready.Control+"/v1/faults", `{"action": "fail", "op": "exists", "code": "NoAuth", "session": `+id+`}`)
	if _, _, err := c.Exists(ctx, "/a"); err == nil {
		t.Error("the fault did not happen")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	ts.stdin.Close()
	ts.await(t, "stdin was closed")
	if log := ts.log.String(); !strings.Contains(log, "fails with NoAuth") || !strings.Contains(log, "server state changed") {
		t.Errorf("the log tells neither of the fault nor of the server:\n%s", log)
	}
}

func TestTestserverStays(t *testing.T) {
	t.Parallel()
	cfg := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(cfg, []byte("tickTime=3000\ndataDir=/nowhere\nclientPort=0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ts := runsTestserver(t, "--stay", "--quiet", "--servers", "3", "--on-disk", cfg)
	ts.stdin.Close()
	if n := strings.Count(ts.ready.ConnectString, ","); n != 2 {
		t.Errorf("connectString %q is not that of 3 servers", ts.ready.ConnectString)
	}
	post(t, ts.ready.Control+"/v1/stop", "")
	ts.await(t, "POST /v1/stop")
	if log := ts.log.String(); strings.Contains(log, "level=") {
		t.Errorf("--quiet writes the servers' log:\n%s", log)
	}
}

// A test server ends when the process that started it ends in any way, including kill
// -9.
// TestTestserverForOtherHosts checks that --host opens both ports to other addresses than
// 127.0.0.1, as a container needs it, and that the line still names addresses to connect to.
func TestTestserverForOtherHosts(t *testing.T) {
	t.Parallel()
	other := otherAddress(t)
	for host, reachable := range map[string]bool{"0.0.0.0": true, "127.0.0.1": false} {
		ts := runsTestserver(t, "--quiet", "--host", host)
		for _, addr := range []string{ts.ready.ConnectString, strings.TrimPrefix(ts.ready.Control, "http://")} {
			named, port, err := net.SplitHostPort(addr)
			if err != nil || named != "127.0.0.1" {
				t.Errorf("--host %s: %s, %v", host, addr, err)
			}
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(other, port), patience)
			if (err == nil) != reachable {
				t.Errorf("--host %s: from another address: %v", host, err)
			}
			if err == nil {
				_ = conn.Close()
			}
		}
		ts.stdin.Close()
		ts.await(t, "stdin was closed")
	}
}

// otherAddress returns an IPv4 address of this host that isn't a loopback address.
func otherAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this host has no address but the loopback")
	return ""
}

func TestTestserverEndsWithItsParent(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for role, more := range map[string][]string{
		"parent without a pipe": nil,
		"parent with a pipe":    {"--parent", strconv.Itoa(os.Getpid())}, // which stays alive
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			parent := exec.CommandContext(ctx, self, append([]string{"testserver"}, more...)...)
			parent.Env = append(os.Environ(), roleVar+"="+role)
			stdout, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			ready := readiness(t, out)
			if ready.PID == parent.Process.Pid {
				t.Errorf("the test server is its own parent: %d", ready.PID)
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { // the pipe ends after both processes have ended
				_, _ = io.Copy(io.Discard, out)
				close(ended)
			}()
			select {
			case <-ended:
			case <-ctx.Done():
				if p, err := os.FindProcess(ready.PID); err == nil {
					_ = p.Kill()
				}
				t.Error("the test server still runs, without its parent")
			}
			_ = parent.Wait() // the error is that it was killed
		})
	}
}

func TestTestserverRefuses(t *testing.T) {
	t.Parallel()
	cfg := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(cfg, []byte("dataDir=/nowhere\ninitLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--servers 0":        "--servers 0",
		"--set tickTime":     "key=value",
		"--parent -7":        "--parent -7",
		"--set tickTime=x":   "tickTime",
		"/no/such/zoo.cfg":   "/no/such/zoo.cfg",
		"a b":                "expects [zoo.cfg]",
		"--tick 1ns":         "tickTime 1ns",
		"--stay " + cfg:      "use --servers to set",
		"--control-port -1":  "-1",
		"--port 99999999999": "99999999999",
	} {
		out, _, err := zkgo(t, append([]string{"testserver"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("zkgo testserver %s: %v, want something about %q; stdout %q", args, err, want, out)
		}
	}
}
