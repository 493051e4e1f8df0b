package clientbench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// serveEnv makes the test binary run as a server.
const serveEnv = "ZKGO_BENCH_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		serve()
	}
	os.Exit(m.Run())
}

// serve runs a server until standard input ends.
func serve() {
	s, err := server.Start(context.Background(), server.Config{Memory: true, ClientAddr: "127.0.0.1:0", Limits: server.Limits{MaxClientCnxns: -1}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-s.Ready()
	fmt.Println(s.ClientAddr())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // returns when the parent ends, too
	_ = s.Close()
	os.Exit(0)
}

// target returns the server's address.
func target(b *testing.B) string {
	b.Helper()
	if addr := os.Getenv("ZKGO_BENCH_ADDR"); addr != "" {
		return addr
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"=1")
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(b)
	out := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the server's address: %v", err)
	}
	return strings.TrimSpace(line)
}

// ops are the operations of a client.
type ops struct {
	get, set func() error
}

func ours(b *testing.B, addr string) ops {
	b.Helper()
	ctx := context.Background()
	c := must.Get(client.Connect(ctx, addr))(b)
	b.Cleanup(func() { _ = c.Close() })
	prepare(b, func(data []byte) error {
		_, err := c.Create(ctx, "/bench", data, client.Ephemeral)
		return err
	})
	data := make([]byte, 100)
	return ops{
		get: func() error { _, _, err := c.Get(ctx, "/bench"); return err },
		set: func() error { _, err := c.Set(ctx, "/bench", data, client.AnyVersion); return err },
	}
}

func gozk(b *testing.B, addr string) ops {
	b.Helper()
	c, events, err := zk.Connect([]string{addr}, 30*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	prepare(b, func(data []byte) error {
		_, err := c.Create("/bench", data, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		return err
	})
	data := make([]byte, 100)
	return ops{
		get: func() error { _, _, err := c.Get("/bench"); return err },
		set: func() error { _, err := c.Set("/bench", data, -1); return err },
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// prepare creates the znode, after the previous client's is gone.
func prepare(b *testing.B, create func([]byte) error) {
	b.Helper()
	must.Do(b, create(make([]byte, 100)))
}

func BenchmarkClients(b *testing.B) {
	addr := target(b)
	for _, op := range []string{"get", "set"} {
		for _, callers := range []int{1, 64, 1000} {
			for _, who := range []string{"zkgo", "gozk"} {
				b.Run(fmt.Sprintf("%s/callers=%d/client=%s", op, callers, who), func(b *testing.B) {
					open := ours
					if who == "gozk" {
						open = gozk
					}
					o := open(b, addr)
					f := o.get
					if op == "set" {
						f = o.set
					}
					measure(b, callers, f)
				})
			}
		}
	}
}

// measure makes callers goroutines share b.N calls.
func measure(b *testing.B, callers int, f func() error) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
