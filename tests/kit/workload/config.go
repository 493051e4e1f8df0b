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

	"github.com/zkgo/zkgo/tests/kit/history"
)

// Config describes the clients and their work. The zero value of a field means its default;
// Servers, Dial and Recorder must be set.
type Config struct {
	Seed     uint64
	Servers  []int                                                   // ids for Dial
	Dial     func(ctx context.Context, server int) (net.Conn, error) // may fail
	Recorder *history.Recorder

	Clients  int // of the mixed kind; default 6, negative: none
	Lockers  int // default 3, negative: none
	Locks    int // that they compete for; default 1
	Pipeline int // maximum of requests in flight per mixed client; default 8

	Timeout time.Duration // requested session timeout; default 6 s
	Think   time.Duration // mean pause of a client between two steps; default 20 ms
	Hold    time.Duration // mean time that a lock is held; default 200 ms

	// LongHolds is the percentage of holds that last longer than two session timeouts: if the
	// holder loses the ensemble, its lock passes to another client before the hold ends, and the
	// waiting clients only ping. Default 0.
	LongHolds int

	// Linear is the percentage of mixed clients that ask for linearizable reads.
	// LinearServers lists the servers that are configured to make all reads linearizable. Default:
	// none.
	Linear        int
	LinearServers []int

	// Readers is the number of clients that only read registers. Default 0.
	Readers int

	// Idlers is the number of clients that only ping, for longer than their
	// session timeout. Default 0.
	Idlers int

	// Registers is the number of registers in use at a time. PerRegister is the
	// number of uses after which a register is replaced by a new one: the time to
	// check the history of a register grows faster than its length. Defaults 4
	// and 150.
	Registers, PerRegister int

	// Calm keeps clients from dropping connections and sessions by themselves.
	Calm bool

	Root string // the znode that contains all others; default /w
}

// world is the state that the clients of one Run share.
type world struct {
	Config
	rec  *history.Recorder
	uses atomic.Int64 // of registers, in total
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
// when they have ended. It returns an error if the tree could not be prepared in
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

// rand returns the random source of one client.
func (w *world) rand(kind, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.Seed, kind<<32|number))
}

// pause waits for d. It returns false if ctx is done or stop is closed first.
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
