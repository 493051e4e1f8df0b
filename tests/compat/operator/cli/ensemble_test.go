package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// TestReconfig changes a real ensemble of three, once with each shell: the same commands
// should give the same replies.
func TestReconfig(t *testing.T) {
	process.Needed(t)
	oracle.Need(t)
	servers := oracle.Ensemble(t, 3, oracle.Options{
		Config: []string{"reconfigEnabled=true", "standaloneEnabled=false", "admin.enableServer=false"},
		JVM:    []string{"-Dzookeeper.skipACL=yes"},
	})
	// A server that is neither the leader nor the one we connect to leaves and joins.
	var addr, id string
	for _, s := range servers {
		mode := must.Get(s.Word("srvr"))(t)
		if strings.Contains(mode, "Mode: leader") {
			addr = s.Addr()
		} else {
			id = strconv.Itoa(s.ID)
		}
	}
	first := run(t, ours(t, "-q", "-server", addr, "config"), "")
	spec := map[string]string{}
	for line := range strings.Lines(first.out) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(key, "server.") {
			spec[key] = value
		}
	}
	if len(spec) != 3 {
		t.Fatalf("the ensemble: %+v", first)
	}
	all := "server.1=" + spec["server.1"] + ",server.2=" + spec["server.2"] + ",server.3=" + spec["server.3"]
	file := filepath.Join(t.TempDir(), "members")
	must.Do(t, os.WriteFile(file, []byte(strings.ReplaceAll(all, ",", "\n")+"\n"), 0o600))
	script := strings.Join([]string{
		"config", "config -c", "config -s",
		"reconfig -remove " + id,
		"reconfig -add server." + id + "=" + spec["server."+id],
		"reconfig -s -add server." + id + "=" + spec["server."+id],
		"reconfig -members " + all,
		"reconfig -file " + file,
		"reconfig -v 1 -remove " + id,
		"reconfig -v zz -remove " + id,
		"reconfig -remove 1,2,3",
		"reconfig -remove 9",
		"reconfig -add nonsense",
		"reconfig -members " + all + " -file " + file,
		"reconfig -file /nothing/there",
		"get /zookeeper/config",
	}, "\n") + "\n"
	want := configless(run(t, java(t, "-server", addr), script))
	got := configless(run(t, ours(t, "-server", addr), script))
	if want.out != got.out {
		t.Errorf("standard output\nzkCli.sh:\n%s\nzkgo cli:\n%s", want.out, got.out)
	}
	if want.err != got.err {
		t.Errorf("standard error\nzkCli.sh:\n%s\nzkgo cli:\n%s", want.err, got.err)
	}
	if n := strings.Count(got.out, "Committed new configuration:"); n < 4 {
		t.Errorf("%d reconfigurations:\n%s%s", n, got.out, got.err)
	}
}

var (
	configVersion = regexp.MustCompile(`(?m)^(version=)?[0-9a-f]{9}( |$)`)
	counts        = regexp.MustCompile(`(?m)^dataVersion = \d+`)
)

// configless removes what differs between configurations: the version, and the number of
// versions so far.
func configless(r result) result {
	r.out = normal(watched.ReplaceAllString(r.out, ""))
	r.out = counts.ReplaceAllString(configVersion.ReplaceAllString(r.out, "${1}VERSION$2"), "dataVersion = N")
	r.err = strings.ReplaceAll(normal(watched.ReplaceAllString(r.err, "")), "/nothing/there/nothing/there (No such", "/nothing/there: open /nothing/there: no such") // the file's name, without a word between
	r.err = strings.ReplaceAll(r.err, "directory)", "directory")
	return r
}
