package zktest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// manyAtOnce is the number of concurrent tests, each with its own server.
const manyAtOnce = 200

// inChild marks a process started by TestManyAtOnce.
const inChild = "ZKTEST_MANY_AT_ONCE"

// TestManyAtOnce runs this test binary again, as go test -parallel 200 would, with 200
// tests. Each waits until they all have a server.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	if os.Getenv(inChild) != "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestManyInOneProcess$", "-test.v", fmt.Sprint("-test.parallel=", manyAtOnce))
	cmd.Env = append(os.Environ(), inChild+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "nothing is left") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestManyInOneProcess is the test that TestManyAtOnce runs.
func TestManyInOneProcess(t *testing.T) {
	if os.Getenv(inChild) == "" {
		t.Skip("TestManyAtOnce runs it in a process of its own")
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var addrs, dirs []string
	all.Add(manyAtOnce)
	t.Run("all", func(t *testing.T) {
		for i := range manyAtOnce {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				var opts []zktest.Option
				if i%20 == 0 {
					opts = append(opts, zktest.OnDisk())
				}
				zs := zktest.Run(t, opts...)
				c, _ := dial(t, zs.Addrs(), net.DialTimeout)
				create(t, c, "/a", "", 0)
				mu.Lock()
				addrs, dirs = append(addrs, zs.Addrs()...), append(dirs, t.TempDir())
				mu.Unlock()
				all.Done()
				all.Wait()
				create(t, c, "/b", "", 0)
			})
		}
	})
	for _, addr := range addrs {
		if nc, err := net.Dial("tcp", addr); err == nil {
			nc.Close()
			t.Errorf("port %s is still open", addr)
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s still exists", dir)
		}
	}
	err := wait.For(patience, "the goroutines end", func() (bool, error) { return runtime.NumGoroutine() <= goroutines, nil })
	if err != nil {
		stacks := make([]byte, 1<<20)
		t.Fatalf("%v: %d, %d before:\n%s", err, runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	// We allow for one more: the first socket of a process opens the runtime's poller,
	// which stays open.
	wait.Eventually(t, fmt.Sprintf("no more open files than %d before", files), func() bool { return openFiles(t) <= files+4 })
	if !t.Failed() && len(addrs) == manyAtOnce {
		t.Log("nothing is left")
	}
}

// openFiles returns the number of open files and sockets of the process, or 0 if it's
// unknown.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}
