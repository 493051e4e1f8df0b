package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// settings are the settings of every server in this package.
var settings = []string{"extendedTypesEnabled=true", "enforceQuota=true", "reconfigEnabled=true", "admin.enableServer=false"}

// zookeeper starts a real ZooKeeper.
func zookeeper(t *testing.T) (addr string) {
	return oracle.Start(t, oracle.Options{Config: settings, JVM: []string{"-Dzookeeper.extendedTypesEnabled=true"}}).Addr()
}

// zkgo starts a zkgo server.
func zkgo(t *testing.T) (addr string) {
	t.Helper()
	ports := must.Get(oracle.FreePorts(1))(t)
	dir := t.TempDir()
	config := append([]string{"tickTime=2000", "dataDir=" + dir, "clientPortAddress=127.0.0.1", fmt.Sprintf("clientPort=%d", ports[0])}, settings...)
	file := filepath.Join(dir, "zoo.cfg")
	must.Do(t, os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o600))
	s := must.Get(process.Run(process.Binary(t), "server", file))(t)
	t.Cleanup(s.Kill)
	return s.Addr
}

// result is the result of a shell.
type result struct {
	out, err string
	code     int
}

// run runs a shell with lines as its input.
func run(t *testing.T, command []string, lines string) result {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(lines), &out, &errs
	cmd.Env = append(os.Environ(), "TZ=UTC")
	watchdog := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("%s: %v", command[0], err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// java returns the command of zkCli.sh, without its line-editing library.
func java(t *testing.T, args ...string) []string {
	t.Helper()
	dir := must.Get(oracle.Dir())(t)
	jars := must.Get(filepath.Glob(filepath.Join(dir, "*.jar")))(t)
	jars = slices.DeleteFunc(jars, func(jar string) bool { return strings.Contains(jar, "jline") })
	path := strings.Join(append(jars, dir), string(os.PathListSeparator))
	return append([]string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8",
		"-Dzookeeper.root.level=OFF", "-cp", path, "org.apache.zookeeper.ZooKeeperMain"}, args...)
}

// ours returns the command of zkgo cli.
func ours(t *testing.T, args ...string) []string {
	return append([]string{process.Binary(t), "cli"}, args...)
}

// block is the output of one command.
type block struct{ command, out, err string }

// Two more commands follow every command. Their output marks where the command's output
// ends, even without a session.
const marks = "redo 99999\nprintwatches\n"

var (
	outMark  = regexp.MustCompile(`printwatches is (on|off)\n(Not connected\n)?`)
	errMark  = "Command index out of range\n"
	watched  = regexp.MustCompile(`\n(WATCHER::|WatchedEvent [^\n]*)\n`) // printed by another thread, in two pieces
	date     = regexp.MustCompile(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d UTC (\d{4})`)
	zxids    = regexp.MustCompile(`(?m)^([cmp]Zxid = )(0x[0-9a-f]+)$`)
	eventID  = regexp.MustCompile(`zxid: \d+`)
	owner    = regexp.MustCompile(`ephemeralOwner = 0x[1-9a-f][0-9a-f]+`)
	greeting = regexp.MustCompile(`(?m)^(Connecting to .*|Welcome to ZooKeeper!|JLine support is disabled)\n`)
	// Each shell prints its own version and build.
	builtFrom = regexp.MustCompile(`(ZooKeeper CLI version: )3\.9\.5(-[0-9a-f]+, built on .*|, zkgo .*)`)
	// zkCli.sh prints the Java type of an exception.
	javaType = regexp.MustCompile(`(?m)^org\.apache\.commons\.cli\.\w+: `)
)

// conversation runs the script, and returns the output of each command and the events.
func conversation(t *testing.T, shell func(*testing.T, ...string) []string, addr string) (blocks []block, events []string) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/script.txt"))(t)
	var commands []string
	var input strings.Builder
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			commands = append(commands, line)
			input.WriteString(line + "\n" + marks)
		}
	}
	r := run(t, shell(t, "-server", addr), input.String())
	for _, stream := range []*string{&r.out, &r.err} { // zkgo cli prints the connection's messages on the error stream
		*stream = watched.ReplaceAllStringFunc(*stream, func(e string) string {
			if text := watched.FindStringSubmatch(e)[1]; text != "WATCHER::" {
				events = append(events, eventID.ReplaceAllString(text, "zxid: Z"))
			}
			return ""
		})
	}
	r.out, r.err = normal(strings.ReplaceAll(r.out, addr, "ADDRESS")), normal(r.err)
	outs, errs := outMark.Split(r.out, -1), strings.Split(r.err, errMark)
	// printwatches is a command of the script too.
	for i, command := range commands {
		if i+1 >= len(outs) || i+1 >= len(errs) {
			t.Fatalf("the shell stopped before %q: code %d\n%s\n%s", command, r.code, tail(outs), tail(errs))
		}
		blocks = append(blocks, block{command, strings.TrimSpace(outs[i]), strings.TrimSpace(errs[i])})
	}
	slices.Sort(events) // several threads of zkCli.sh print them
	return blocks, events
}

func tail(list []string) string { return list[len(list)-1] }

// normal replaces the values that differ between runs: dates except the epoch, sessions,
// and zxids. We keep the order of the zxids.
func normal(text string) string {
	text = greeting.ReplaceAllString(text, "")
	text = builtFrom.ReplaceAllString(text, "${1}3.9.5")
	text = javaType.ReplaceAllString(text, "")
	text = date.ReplaceAllStringFunc(text, func(d string) string {
		if strings.HasSuffix(d, "1970") {
			return "EPOCH"
		}
		return "DATE"
	})
	text = owner.ReplaceAllString(text, "ephemeralOwner = SESSION")
	return zxids.ReplaceAllStringFunc(text, func(line string) string {
		m := zxids.FindStringSubmatch(line)
		if m[2] == "0x0" {
			return line
		}
		return m[1] + "ZXID"
	})
}

// onlyIn removes the usage lines of commands that zkCli.sh doesn't have.
func onlyIn(want, got string) string {
	var kept []string
	for line := range strings.SplitSeq(got, "\n") {
		if !strings.HasPrefix(line, "\t") || strings.Contains(want, line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// TestScript runs all commands on the real server and on zkgo, with both shells.
func TestScript(t *testing.T) {
	process.Needed(t)
	oracle.Need(t)
	for name, start := range map[string]func(*testing.T) string{"ZooKeeper": zookeeper, "zkgo": zkgo} {
		t.Run(name, func(t *testing.T) {
			want, wantEvents := conversation(t, java, start(t))
			got, gotEvents := conversation(t, ours, start(t))
			differs := 0
			for i, w := range want {
				g := got[i]
				g.err = onlyIn(w.err, g.err)
				d, expected := differences[w.command]
				switch {
				case expected && (w.out == g.out && w.err == g.err):
					t.Errorf("%s: no difference, though one is expected: %s", w.command, d.why)
				case expected && (d.out != g.out || d.err != g.err):
					t.Errorf("%s\nwant, for %s:\n%q\n%q\ngot:\n%q\n%q", w.command, d.why, d.out, d.err, g.out, g.err)
				case expected:
					differs++
				case w.out != g.out || w.err != g.err:
					t.Errorf("%s\nzkCli.sh: %q\n          %q\nzkgo cli: %q\n          %q", w.command, w.out, w.err, g.out, g.err)
				}
			}
			if !slices.Equal(wantEvents, gotEvents) {
				t.Errorf("events\nzkCli.sh:\n%s\nzkgo cli:\n%s", strings.Join(wantEvents, "\n"), strings.Join(gotEvents, "\n"))
			}
			t.Logf("%d commands compared, %d of them differ on purpose, %d events", len(want), differs, len(wantEvents))
		})
	}
}
