package workload

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/tests/history"
)

// Config says what clients there are and what they do. The zero value of a
// field means its default; Servers, Dial and Recorder have to be set.
type Config struct {
	Seed     uint64
	Servers  []int                                                   // ids for Dial
	Dial     func(ctx context.Context, server int) (net.Conn, error) // may fail
	Recorder *history.Recorder

	Clients  int // of the mixed kind; default 6, negative: none
	Lockers  int // default 3, negative: none
	Locks    int // that they compete for; default 1
	Pipeline int // most requests in flight of a mixed client; default 8

	Timeout time.Duration // of sessions, to ask for; default 6 s
	Think   time.Duration // mean pause of a client between two steps; default 20 ms
	Hold    time.Duration // mean time that a lock is held; default 200 ms

	// LongHolds is how many of a hundred holds last longer than two sessions
	// may be silent: who loses the ensemble holds a lock that passes on then,
	// and those who wait do nothing but ping. Default 0.
	LongHolds int

	// Linear is how many of a hundred mixed clients ask for linearizable reads.
	// LinearServers are the servers whose configuration makes all reads so.
	// Default: none.
	Linear        int
	LinearServers []int

	// Readers is how many clients only read registers. Default 0.
	Readers int

	// Idlers is how many clients do nothing but ping for longer than their
	// sessions may be silent. Default 0.
	Idlers int

	// Registers is how many registers are in use at a time, PerRegister after
	// how many uses each is given up for a new one: the time to check the
	// history of one grows faster than its length. Defaults 4 and 150.
	Registers, PerRegister int

	// Calm keeps clients from dropping connections and sessions by themselves.
	Calm bool

	Root string // the znode below which all happens; default /w
}

// world is what the clients of one Run share.
type world struct {
	Config
	rec  *history.Recorder
	uses atomic.Int64 // of registers, ever
}

// newWorld fills in the defaults.
func newWorld(cfg Config) (*world, error) {
	if len(cfg.Servers) == 0 || cfg.Dial == nil || cfg.Recorder == nil {
		return nil, errors.New("workload: Servers, Dial and Recorder have to be set")
	}
	cfg.Clients = max(0, cmp.Or(cfg.Clients, 6))
	cfg.Lockers = max(0, cmp.Or(cfg.Lockers, 3))
	cfg.Locks = cmp.Or(cfg.Locks, 1)
	cfg.Pipeline = cmp.Or(cfg.Pipeline, 8)
	cfg.Timeout = cmp.Or(cfg.Timeout, 6*time.Second)
	cfg.Think = cmp.Or(cfg.Think, 20*time.Millisecond)
	cfg.Hold = cmp.Or(cfg.Hold, 200*time.Millisecond)
	cfg.Registers = cmp.Or(cfg.Registers, 4)
	cfg.PerRegister = cmp.Or(cfg.PerRegister, 150)
	cfg.Root = cmp.Or(cfg.Root, "/w")
	return &world{Config: cfg, rec: cfg.Recorder}, nil
}

// Run prepares the tree, lets all clients work until ctx is done, and returns
// when they have ended. The error says that the tree could not be prepared in
// time: then nothing was tested.
func Run(ctx context.Context, cfg Config) error {
	w, err := newWorld(cfg)
	if err != nil {
		return err
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := range w.Clients {
		wg.Go(func() { w.newMixed(uint64(i)).run(ctx) })
	}
	for i := range w.Lockers {
		wg.Go(func() { w.newLocker(uint64(i)).run(ctx) })
	}
	for i := range w.Readers {
		wg.Go(func() { w.newReader(uint64(i)).run(ctx) })
	}
	for i := range w.Idlers {
		wg.Go(func() { w.newIdler(uint64(i)).run(ctx) })
	}
	wg.Wait()
	return nil
}

// rand returns the source of what one client decides.
func (w *world) rand(kind, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.Seed, kind<<32|number))
}

// pause waits about d and reports false when ctx is done or stop closed first.
func pause(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
