package mirror

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// needShell skips a test with commands for a Unix shell.
func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands in this test are for /bin/sh")
	}
}

// A command runs once for each server, and knows which one.
func TestHook(t *testing.T) {
	t.Parallel()
	needShell(t)
	out := filepath.Join(t.TempDir(), "out")
	h := Hook{Command: `echo "{host} {port} {id} $HOST $PORT $ID" >> '` + out + `'`}
	must.Do(t, h.Run(t.Context(), []OldServer{{ID: 1, Client: "zk1:2181"}, {ID: 0, Client: "[fe80::1%eth0]:2182"}}))
	lines := strings.Fields(string(must.Get(os.ReadFile(out))(t)))
	slices.Sort(lines)
	if got := strings.Join(lines, " "); got != "0 0 1 1 2181 2181 2182 2182 fe80::1%eth0 fe80::1%eth0 zk1 zk1" {
		t.Errorf("%q", got)
	}
}

func TestHookErrors(t *testing.T) {
	t.Parallel()
	needShell(t)
	one, unknown := OldServer{ID: 1, Client: "zk1:2181"}, OldServer{ID: -1, Quorum: []string{"zk2:2888"}}
	for command, want := range map[string]string{
		"echo refused >&2; exit 3":                    "server 1 (zk1:2181), echo refused >&2; exit 3: exit status 3\nrefused",
		"head -c 9000 /dev/zero | tr '\\0' x; exit 1": strings.Repeat("x", mostOutput),
		"exec sleep 60":                               "it ran longer than 50ms",
		"sleep 2 & wait":                              "it ran longer than 50ms",
		"stop {id}":                                   "needs the id of zk2:2888",
		"stop {port}":                                 "needs the client port of zk2:2888",
	} {
		s, limit := one, time.Minute
		if strings.HasPrefix(command, "stop") {
			s = unknown
		}
		if strings.Contains(want, "longer") {
			limit = 50 * time.Millisecond
		}
		begin := time.Now()
		err := Hook{Command: command, Timeout: limit}.Run(t.Context(), []OldServer{s})
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > mostOutput+200 {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("%s took %v", command, took)
		}
	}
	evil := OldServer{ID: 1, Client: "$(touch x):2181"}
	if err := (Hook{Command: "true"}).Run(t.Context(), []OldServer{evil}); err == nil || !strings.Contains(err.Error(), "is not one") {
		t.Error(err)
	}
}
