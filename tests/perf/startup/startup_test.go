package startup

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// How often each start is measured.
const (
	ourStarts     = 200
	ourClusters   = 50
	javaStarts    = 10
	curatorStarts = 50
	curatorTrios  = 10
	limit         = 10 * time.Minute
)

// TestStartup prints medians, and fails only if a server doesn't start.
func TestStartup(t *testing.T) {
	if os.Getenv("ZKGO_LIVE") == "" {
		t.Skip("measures start-up times beside Java; set ZKGO_LIVE=1")
	}
	oracle.Need(t)
	figures := map[string][]time.Duration{}
	measure(t, figures, "zktest.Run", ourStarts, func(t *testing.T) { create(t, zktest.Run(t).Addrs()) })
	measure(t, figures, "zktest.RunCluster(t, 3)", ourClusters, func(t *testing.T) { create(t, zktest.RunCluster(t, 3).Addrs()) })
	measure(t, figures, "the Java server, a process", javaStarts, func(t *testing.T) {
		create(t, []string{oracle.Start(t, oracle.Options{}).Addr()})
	})
	curator(t, figures)
	for _, what := range slices.Sorted(keys(figures)) {
		list := figures[what]
		first := list[0]
		slices.Sort(list)
		t.Logf("%-30s median %8.1f ms, first %8.1f ms, best %8.1f ms, %d starts", what, ms(list[len(list)/2]), ms(first), ms(list[0]), len(list))
	}
}

func keys(m map[string][]time.Duration) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// measure records the duration of start n times, each in a test that ends before the next one
// begins.
func measure(t *testing.T, figures map[string][]time.Duration, what string, n int, start func(*testing.T)) {
	t.Helper()
	for range n {
		t.Run("", func(t *testing.T) {
			begun := time.Now()
			start(t)
			figures[what] = append(figures[what], time.Since(begun))
		})
	}
}

// quiet is a logger that discards its output.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// create connects by TCP and creates a znode.
func create(t *testing.T, addrs []string) {
	t.Helper()
	c, _, err := zk.Connect(addrs, 30*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(net.DialTimeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	must.Get(c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)))(t)
}

// curator runs the program in the folder of that name. It measures starts in a running JVM;
// the first start loads the classes.
func curator(t *testing.T, figures map[string][]time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	classpath := filepath.Join(dir, "classpath")
	run(ctx, t, "mvn", "-q", "-B", "-f", "curator/pom.xml", "dependency:build-classpath", "-Dmdep.outputFile="+classpath)
	jars := must.Get(os.ReadFile(classpath))(t)
	run(ctx, t, "javac", "-cp", string(jars), "-d", dir, "curator/src/Startup.java")
	out := run(ctx, t, "java", "-cp", dir+string(os.PathListSeparator)+string(jars), "Startup", fmt.Sprint(curatorStarts), fmt.Sprint(curatorTrios))
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		what, number, _ := strings.Cut(lines.Text(), " ")
		taken, err := strconv.ParseFloat(number, 64)
		name := map[string]string{"server": "Curator's TestingServer", "cluster": "Curator's TestingCluster(3)"}[what]
		if err != nil || name == "" {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		figures[name] = append(figures[name], time.Duration(taken*float64(time.Millisecond)))
	}
}

// run runs a program and returns its output.
func run(ctx context.Context, t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return out
}
