//go:build linux

package deploy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// TestNotify acts as systemd: the server should notify it when it has opened its ports,
// when it serves, and when it stops.
func TestNotify(t *testing.T) {
	process.Needed(t)
	dir := t.TempDir()
	socket := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}))(t)
	defer socket.Close()
	next := func() string {
		t.Helper()
		must.Do(t, socket.SetReadDeadline(time.Now().Add(process.Patience)))
		b := make([]byte, 4096)
		n := must.Get(socket.Read(b))(t)
		return string(b[:n])
	}
	port := freePort(t)
	cmd := exec.Command(program(t), "server", "--data-dir", filepath.Join(dir, "data"), "--client-port", fmt.Sprint(port),
		"--set", "clientPortAddress=127.0.0.1", "--set", "admin.enableServer=false")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"))
	d := run(t, cmd)
	if got := next(); got != "READY=1\nSTATUS=waiting for a quorum" {
		t.Errorf("first %q", got)
	}
	conn, err := net.Dial("tcp", local(port))
	if err != nil {
		t.Fatalf("it is ready, and %v", err)
	}
	conn.Close()
	if got := next(); got != "STATUS=serves clients" {
		t.Errorf("then %q", got)
	}
	if err := d.Stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if got := next(); got != "STOPPING=1\nSTATUS=stops" {
		t.Errorf("at last %q", got)
	}
}

// TestUnit makes systemd verify the unit and rate its sandboxing.
func TestUnit(t *testing.T) {
	process.Needed(t)
	dir := t.TempDir()
	text := must.Get(os.ReadFile(filepath.Join(root, "deploy/systemd/zkgo.service")))(t)
	unit := filepath.Join(dir, "zkgo.service")
	write(t, unit, strings.Replace(string(text), "/usr/bin/zkgo", program(t), 1))
	if out := output(t, command(t, "systemd-analyze", "verify", "--man=no", unit)); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	// 10 is a unit without restrictions, 0 one that may do nothing.
	output(t, command(t, "systemd-analyze", "security", "--offline=yes", "--threshold=15", unit))
}
