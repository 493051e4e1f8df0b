package load

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lock is one client's handle of one lock. Only one goroutine uses it.
type Lock interface {
	// Acquire waits until the lock is held.
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// Client is one client with its own connections.
type Client interface {
	Lock(name string) Lock
	Close() error
}

// Dial opens a client of the servers at addrs.
type Dial func(ctx context.Context, addrs []string) (Client, error)

// Shapes of work.
const (
	Own    = "own"    // every client has its own lock
	Shared = "shared" // all clients want the same lock, and ask again immediately
	Worked = "worked" // all clients want the same lock, work while they hold it and rest after
)

// A client that works holds the lock for a while, and then doesn't ask for it for a while:
// otherwise, in a service that doesn't notify clients of a release, a client that asks
// again immediately would always win. Together, eight clients want the lock for more than
// all of the time, so one always waits.
const (
	work = 5 * time.Millisecond
	rest = 20 * time.Millisecond
)

// Job is the task of a program.
type Job struct {
	Kind    string // of lock
	Shape   string
	Addrs   []string
	Clients int
	Warm    time.Duration // before counting begins
	For     time.Duration // how long to count
	Root    string        // prefix of the lock names
}

// Flags defines a Job's command line; the returned function may be called after flag.Parse.
func Flags() func() Job {
	kind := flag.String("kind", "", "kind of lock")
	shape := flag.String("shape", Shared, "own, shared or worked")
	addrs := flag.String("addrs", "", "servers, separated by commas")
	clients := flag.Int("clients", 8, "clients")
	warm := flag.Duration("warm", 300*time.Millisecond, "time before anything is counted")
	length := flag.Duration("for", time.Second, "time that is counted")
	root := flag.String("root", "lockbench", "begins the names of the locks")
	return func() Job {
		return Job{*kind, *shape, strings.Split(*addrs, ","), *clients, *warm, *length, *root}
	}
}

// Work implements a shape of work.
type Work func(ctx context.Context, dial Dial, j Job) (Result, error)

// Main is the main function of a program: it runs the job in its command line with the kind that
// the job names, and prints the result as JSON. more are shapes that only this program has.
func Main(kinds map[string]Dial, more map[string]Work) {
	job := Flags()
	flag.Parse()
	result, err := func() (Result, error) {
		j := job()
		dial, ok := kinds[j.Kind]
		if !ok {
			return Result{}, fmt.Errorf("no kind of lock is called %q", j.Kind)
		}
		if work, ok := more[j.Shape]; ok {
			return work(context.Background(), dial, j)
		}
		return Run(context.Background(), dial, j)
	}()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Run opens the clients, makes them compete, and returns the result.
func Run(ctx context.Context, dial Dial, j Job) (Result, error) {
	clients := make([]Client, j.Clients)
	for i := range clients {
		c, err := dial(ctx, j.Addrs)
		if err != nil {
			return Result{}, err
		}
		defer c.Close()
		clients[i] = c
	}
	all := make([][]Holding, len(clients))
	errs := make([]error, len(clients))
	from := time.Now().Add(j.Warm)
	until := from.Add(j.For)
	var wg sync.WaitGroup
	for i, c := range clients {
		name := j.Root + "-" + j.Shape
		if j.Shape == Own {
			name = fmt.Sprint(name, i)
		}
		wg.Go(func() { all[i], errs[i] = compete(ctx, c.Lock(name), i, j.Shape, until) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return Result{}, err
		}
	}
	return Judge(slices.Concat(all...), j.Shape, from, until), nil
}

// Holding is one period in which a client held the lock.
type Holding struct {
	Client   int
	Asked    time.Time // when Acquire was called
	Held     time.Time // when Acquire returned
	Released time.Time // when Release was called
}

// compete acquires and releases until time is up.
func compete(ctx context.Context, l Lock, client int, shape string, until time.Time) ([]Holding, error) {
	var list []Holding
	for {
		h := Holding{Client: client, Asked: time.Now()}
		if h.Asked.After(until) {
			return list, nil
		}
		if err := l.Acquire(ctx); err != nil {
			return nil, fmt.Errorf("acquiring: %w", err)
		}
		h.Held = time.Now()
		if shape == Worked {
			time.Sleep(work)
		}
		h.Released = time.Now()
		list = append(list, h)
		if err := l.Release(ctx); err != nil {
			return nil, fmt.Errorf("releasing: %w", err)
		}
		if shape == Worked {
			time.Sleep(rest)
		}
	}
}
