//go:build linux

package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// TestThreeFiveThree grows and shrinks an ensemble with the commands of docs/operate/membership.md.
func TestThreeFiveThree(t *testing.T) {
	e := newEnsemble(t, 5)
	zkgo := program(t)
	e.form(zkgo, 1, 2, 3)
	e.write("a b c", 1, 2, 3)

	for _, id := range []int{4, 5} {
		e.configure(id, 1, 2, 3, id)
	}
	e.start(zkgo, 4, 5)
	e.reconfig(1, "-add", e.line(4)+","+e.line(5))
	e.whole(1, 2, 3, 4, 5)
	e.more()
	// With five servers, two may stop: 1 and 2 were a majority of the first three.
	e.stop(1, 2)
	e.more()
	e.start(zkgo, 1, 2)
	e.whole(1, 2, 3, 4, 5)

	lead := e.leader(1, 2, 3, 4, 5)
	leaves, stays := []int{lead}, []int{}
	for id := 1; id <= 5; id++ {
		switch {
		case id == lead:
		case len(leaves) < 2:
			leaves = append(leaves, id)
		default:
			stays = append(stays, id)
		}
	}
	e.reconfig(stays[0], "-remove", fmt.Sprintf("%d,%d", leaves[0], leaves[1]))
	e.stop(leaves...)
	e.whole(stays...)
	e.more()
	e.verify(stays...)
}

// TestLostVolume replaces a server's directory with an empty one.
func TestLostVolume(t *testing.T) {
	e := newEnsemble(t, 3)
	zkgo := program(t)
	e.form(zkgo, 1, 2, 3)
	e.write("a b", 1, 2, 3)
	lost := e.leader(1, 2, 3) // the worst case
	e.servers[lost].Kill()
	e.wipe(lost)
	e.more()
	e.start(zkgo, lost)
	e.whole(1, 2, 3)
	// It has its data back, and a vote: another server may stop.
	e.stop(lost%3 + 1)
	e.more()
	e.start(zkgo, lost%3+1)
	e.whole(1, 2, 3)
	e.verify(1, 2, 3)
}

// TestNewAddress moves a server to other ports, for clients and for servers. Only that
// server's own file has the new ports.
func TestNewAddress(t *testing.T) {
	e := newEnsemble(t, 3)
	zkgo := program(t)
	e.form(zkgo, 1, 2, 3)
	e.write("a b", 1, 2, 3)
	moved := e.leader(1, 2, 3)
	e.stop(moved)
	m := e.servers[moved]
	m.quorum, m.election, m.client = freePort(t), freePort(t), freePort(t)
	e.configure(moved, 1, 2, 3)
	e.start(zkgo, moved)
	e.whole(1, 2, 3)
	other := moved%3 + 1
	wait.Eventually(t, "the new address in /zookeeper/config", func() bool {
		out, err := command(t, zkgo, "cli", "-q", "-server", local(e.servers[other].client), "config").CombinedOutput()
		return err == nil && strings.Contains(string(out), fmt.Sprintf("server.%d=127.0.0.1:%d:", moved, m.quorum))
	})
	e.stop(other)
	e.more()
	e.start(zkgo, other)
	e.whole(1, 2, 3)
	e.verify(1, 2, 3)
}

// oldVersion is the older version of the upgrade: one of the first commits with the current formats
// of files and of messages between servers. There was no release before it, so we can't use one.
const oldVersion = "d87dc7f"

// older builds an older version from the repository's history.
func older(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "older")
	must.Do(t, os.Mkdir(dir, 0o755))
	archive := filepath.Join(dir, "source.tar")
	if out, err := command(t, "git", "-C", root, "archive", "-o", archive, oldVersion).CombinedOutput(); err != nil {
		// A clone without history has no older version.
		t.Logf("%s is not in this clone, so both versions are of the same source: %s", oldVersion, out)
		return program(t)
	}
	output(t, command(t, "tar", "-xf", archive, "-C", dir))
	build := command(t, "go", "build", "-trimpath", "-o", "zkgo", "./cmd/zkgo")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	output(t, build)
	return filepath.Join(dir, "zkgo")
}

// behaviour matches the behaviour level in the source.
var behaviour = regexp.MustCompile(`(?m)^const Level = (\d+)$`)

// newer builds these sources as a version with the next behaviour level, and returns the
// program and that level.
func newer(t *testing.T) (string, int) {
	t.Helper()
	file := must.Get(filepath.Abs(filepath.Join(root, "raftfsm/internal/command/entry.go")))(t)
	text := must.Get(os.ReadFile(file))(t)
	found := behaviour.FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s does not say its level", file)
	}
	level := must.Get(strconv.Atoi(string(found[1])))(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "entry.go"), behaviour.ReplaceAllString(string(text), fmt.Sprint("const Level = ", level+1)))
	overlay := must.Get(json.Marshal(map[string]map[string]string{"Replace": {file: filepath.Join(dir, "entry.go")}}))(t)
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	path := filepath.Join(dir, "zkgo")
	build := command(t, "go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, "github.com/zkgo/zkgo/cmd/zkgo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output(t, build)
	return path, level + 1
}

// TestUpgrade upgrades the servers one after another while clients write: from an older
// version to this one, and from this one to a version that changes what entries do. Until
// the last server runs the newer version, we can revert every step. Afterwards the older
// version should refuse to start, and do no harm.
func TestUpgrade(t *testing.T) {
	e := newEnsemble(t, 3)
	a, b := older(t), program(t)
	c, level := newer(t)
	e.form(a, 1, 2, 3)
	e.write("a b c", 1, 2, 3)
	replace := func(zkgo string, ids ...int) {
		t.Helper()
		for _, id := range ids {
			e.stop(id)
			e.start(zkgo, id)
			e.whole(1, 2, 3)
			e.more()
		}
	}
	lead := e.leader(1, 2, 3)
	one, other := lead%3+1, (lead+1)%3+1
	replace(b, one, other)
	replace(a, one)       // and downgrade
	replace(b, one, lead) // the leader last: one election less
	for _, id := range []int{1, 2, 3} {
		e.says(id, fmt.Sprint("zk_behaviour_level ", level-1))
	}
	replace(c, one, other)
	for _, id := range []int{one, other} {
		e.says(id, fmt.Sprint("zk_behaviour_level ", level-1))
		e.says(id, fmt.Sprint("zk_behaviour_level_known ", level))
	}
	replace(b, other) // the newest version may still be downgraded
	replace(c, other, lead)
	for _, id := range []int{1, 2, 3} {
		e.says(id, fmt.Sprint("zk_behaviour_level ", level))
	}
	e.stop(one)
	out, err := exec.Command(b, "server", e.servers[one].dir+"/zoo.cfg").CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("needs behaviour level %d, this server knows %d", level, level-1)) {
		t.Errorf("the older version on the newer log: %v\n%s", err, out)
	}
	e.start(c, one)
	e.whole(1, 2, 3)
	e.verify(1, 2, 3)
}
