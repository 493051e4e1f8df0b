package locks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
)

// session is the session timeout; the other workers use the same.
const session = 3 * time.Second

// goWorker is a process that acquires locks with package recipes/lock. Its arguments:
// careful or careless, CONNECT, REGISTER, KIND:PATH:THREADS...
func goWorker(args []string) error {
	ctx := context.Background()
	c, err := client.Connect(ctx, args[1], client.WithSessionTimeout(session), client.WithLazy())
	if err != nil {
		return err
	}
	defer c.Close()
	lang := "go"
	if args[0] == "careless" {
		lang = "go-careless"
	}
	var all sync.WaitGroup
	for _, job := range args[3:] {
		parts := strings.Split(job, ":")
		threads, err := strconv.Atoi(parts[2])
		if err != nil {
			return err
		}
		for range threads {
			w := &worker{lang: lang, kind: parts[0], path: parts[1], conn: recipes.On(c)}
			if err := w.dial(args[2]); err != nil {
				return err
			}
			all.Go(func() {
				for w.turn(ctx) {
				}
			})
		}
	}
	all.Wait()
	return nil
}

// worker is one thread.
type worker struct {
	lang, kind, path string
	conn             recipes.Conn
	tcp              net.Conn
	in               *bufio.Scanner
	turns            int
}

func (w *worker) dial(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	w.tcp, w.in = conn, bufio.NewScanner(conn)
	w.ask("hello", w.lang, os.Getpid(), w.path)
	return nil
}

// ask sends a request to the register.
func (w *worker) ask(words ...any) []string {
	if _, err := fmt.Fprintln(w.tcp, words...); err != nil || !w.in.Scan() {
		os.Exit(0) // the test is over
	}
	return strings.Fields(w.in.Text())
}

// acquire waits for the lock of the next turn.
func (w *worker) acquire(ctx context.Context) (*lock.Lease, string, error) {
	w.turns++
	options := []lock.Option{lock.WithData([]byte(w.lang))}
	if strings.HasPrefix(w.kind, "kazoo") {
		options = append(options, lock.WithKazooLayout())
	}
	switch w.kind {
	case "rw", "kazoo-rw":
		m := lock.NewRWMutex(w.conn, w.path, options...)
		if w.turns%4 == 0 {
			l, err := m.Write(ctx)
			return l, "write", err
		}
		l, err := m.Read(ctx)
		return l, "read", err
	case "semaphore":
		l, err := lock.NewSemaphore(w.conn, w.path, leases, options...).Acquire(ctx)
		return l, "lease", err
	case "watchdog":
		l, err := lock.NewLeaseLock(w.conn, w.path, lock.WithWatchdog(session), lock.WithOptions(options...)).Acquire(ctx)
		return l, "write", err
	}
	l, err := lock.NewMutex(w.conn, w.path, options...).Acquire(ctx)
	return l, "write", err
}

// turn acquires the lock once, and releases it.
func (w *worker) turn(ctx context.Context) bool {
	lease, mode, err := w.acquire(ctx)
	if err != nil {
		w.ask("fail", err)
		return true
	}
	before, err := w.value(ctx, mode)
	if err != nil {
		w.ask("fail", err)
	}
	values := w.ask("enter", mode, int64(lease.Token()), lease.Path())
	switch {
	case w.lang == "go" && lease.Err() != nil:
		w.ask("lost", "noticed")
	case mode == "write":
		plain, _ := strconv.Atoi(values[0])
		fenced, _ := strconv.Atoi(values[1]) // 0 if refused
		w.ask("plain", plain+1)
		w.ask("fenced", fenced+1)
		w.ask("znode", w.guarded(ctx, lease, before+1))
	}
	state := "held"
	if lease.Err() != nil {
		state = "lost"
	}
	on := w.ask("exit", state)[0] == "go"
	if err := lease.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
		w.ask("fail", err)
	}
	return on
}

// value reads the protected znode.
func (w *worker) value(ctx context.Context, mode string) (int, error) {
	if mode != "write" {
		return 0, nil
	}
	s, err := w.conn.Session(ctx)
	if err != nil {
		return 0, err
	}
	b, _, err := s.Get(ctx, "/data"+w.path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(b))
}

// guarded writes the protected znode if the lock's znode still exists.
func (w *worker) guarded(ctx context.Context, lease *lock.Lease, value int) string {
	data := strconv.AppendInt(nil, int64(value), 10)
	var err error
	if w.lang == "go" {
		err = lease.Set(ctx, "/data"+w.path, data, client.AnyVersion)
	} else {
		err = w.unasked(ctx, lease.Path(), data)
	}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, client.ErrUnknownOutcome):
		return "unknown"
	}
	return "refused"
}

// unasked writes in the current session without asking the lease.
func (w *worker) unasked(ctx context.Context, node string, data []byte) error {
	s, err := w.conn.Session(ctx)
	if err != nil {
		return err
	}
	return s.Multi(ctx, recipes.Op{Kind: recipes.OpCheck, Path: node, Version: client.AnyVersion},
		recipes.Op{Kind: recipes.OpSet, Path: "/data" + w.path, Data: data, Version: client.AnyVersion})
}
