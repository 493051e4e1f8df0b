package chaos

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tests/kit/workload"
)

// Config describes a run.
type Config struct {
	Options
	Duration time.Duration
	// Promise names the faults that must be seen; nil: all that the number of
	// servers allows. If time is left after them, more faults follow.
	Promise []string
	Rate    float64 // minimum of operations per second, over the whole run; default 200
	Logf    func(format string, args ...any)
}

// ErrVoid means that a run has proved nothing, although it found no error.
var ErrVoid = errors.New("void")

// Report is the result of a run.
type Report struct {
	Took      time.Duration // during which clients worked
	Faults    map[string]int
	Elections int
	Answered  int // requests with a reply
	Unknown   int // requests without a reply
	History   *history.History
}

// Rate returns the number of answered operations per second.
func (r *Report) Rate() float64 { return float64(r.Answered) / max(r.Took.Seconds(), 1) }

// String returns the report as one line.
func (r *Report) String() string {
	total := 0
	var kinds []string
	for name, n := range r.Faults {
		kinds = append(kinds, fmt.Sprintf("%s %d", name, n))
		total += n
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%v: %d requests answered (%.0f a second), %d without a reply; %d elections; %d faults: %v",
		r.Took.Round(time.Second), r.Answered, r.Rate(), r.Unknown, r.Elections, total, kinds)
}

const (
	// places is the number of places in the network that clients connect from.
	places = 6
	// Seeds of the random decisions.
	scheduleSeed, stepSeed = 11, 12
)

// run is a run in progress.
type run struct {
	cfg     Config
	c       *Cluster
	trace   *Trace
	rec     *history.Recorder
	report  *Report
	digests map[digestKey]bool
}

// Run runs an ensemble and injects faults. The checkers judge the history: the
// error only says that the run is void, or that the ensemble did not recover. The
// report has the history in either case, if anything ran at all.
func Run(cfg Config) (*Report, error) {
	cfg.Rate = cmp.Or(cfg.Rate, 200)
	report := &Report{Faults: map[string]int{}, History: &history.History{}}
	file, err := os.Create(filepath.Join(cfg.Dir, "history.jsonl"))
	if err != nil {
		return report, err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	rec := history.NewRecorder(out)
	trace, err := NewTrace(filepath.Join(cfg.Dir, "trace"), func(s string) {
		rec.Note("%s", s)
		if cfg.Logf != nil {
			cfg.Logf("%s", s)
		}
	})
	if err != nil {
		return report, err
	}
	defer trace.Close()
	r := &run{cfg: cfg, trace: trace, rec: rec, report: report, digests: map[digestKey]bool{}}
	err = r.run()
	err = errors.Join(err, rec.Flush(), out.Flush())
	r.report.History = rec.History()
	r.count()
	if err == nil {
		err = r.enough()
	}
	return r.report, err
}

func (r *run) run() (err error) {
	r.trace.Printf("seed %d, %d servers, store %s, network %s, %v", r.cfg.Seed, r.cfg.Servers, r.cfg.Store, cmp.Or(r.cfg.Network, Proxies), r.cfg.Duration)
	r.cfg.Linear = []int{1}
	if r.c, err = NewCluster(r.cfg.Options, r.trace); err != nil {
		return err
	}
	defer r.c.Close()
	if err := r.c.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	load := r.load()
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- workload.Run(ctx, load) }()
	err = r.torment(began)
	if err == nil {
		err = r.c.AwaitHealthy()
	}
	r.report.Took = time.Since(began)
	cancel()
	if err = errors.Join(err, <-ended); err == nil {
		err = r.final(load)
	}
	if err != nil {
		r.c.Explain()
	}
	return err
}

// load describes the clients' work.
func (r *run) load() workload.Config {
	var servers []int
	for _, m := range r.c.Members {
		servers = append(servers, m.ID)
	}
	var conns atomic.Int64
	return workload.Config{Seed: r.cfg.Seed, Servers: servers, Recorder: r.rec, Clients: 10, Think: 8 * time.Millisecond,
		Lockers: 8, Locks: 4, LongHolds: 20, Linear: 20, LinearServers: r.cfg.Linear, Readers: 3, Idlers: 10,
		Dial: func(ctx context.Context, server int) (net.Conn, error) {
			return r.c.Dial(ctx, int(conns.Add(1))%places, server)
		}}
}

// torment injects the promised faults and then others until the time is over.
func (r *run) torment(began time.Time) error {
	rnd := rand.New(rand.NewPCG(r.cfg.Seed, scheduleSeed))
	round, err := r.promised()
	if err != nil {
		return err
	}
	never := make(chan struct{})
	for step := 0; ; {
		rnd.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		for _, f := range round {
			if step >= len(round) && time.Since(began) > r.cfg.Duration {
				return nil
			}
			s := &scene{Cluster: r.c, rnd: rand.New(rand.NewPCG(r.cfg.Seed, uint64(step)<<8|stepSeed)), done: never}
			s.hold(200*time.Millisecond, 1500*time.Millisecond)
			r.trace.Printf("%d: %s", step, f.name)
			if err := f.run(s); err != nil {
				return fmt.Errorf("%s, step %d of the run: %w", f.name, step, err)
			}
			r.trace.Printf("%d: %s is over", step, f.name)
			r.report.Faults[f.name]++
			r.noteDigests()
			step++
		}
	}
}

// promised returns the faults of the run.
func (r *run) promised() ([]fault, error) {
	var all []fault
	for _, f := range faults(r.cfg.Network) {
		if r.cfg.Servers >= f.servers && (r.cfg.Promise == nil || slices.Contains(r.cfg.Promise, f.name)) {
			all = append(all, f)
		}
	}
	if r.cfg.Promise != nil && len(all) != len(r.cfg.Promise) {
		return nil, fmt.Errorf("not all of the faults %v exist, or not with %d servers and the network %q", r.cfg.Promise, r.cfg.Servers, r.cfg.Network)
	}
	return all, nil
}

// final reads everything through every server.
func (r *run) final(load workload.Config) error {
	r.trace.Printf("reading everything through every server")
	for _, m := range r.c.Members {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		s, err := workload.Dump(ctx, load, m.ID)
		cancel()
		if err != nil {
			return err
		}
		r.rec.State(s)
	}
	r.noteDigests()
	if refusal := "refused a Raft message"; r.c.logged(refusal) {
		return fmt.Errorf("a server %s of another: its log says which", refusal)
	}
	return nil
}

// count counts the clients' operations.
func (r *run) count() {
	for _, o := range r.report.History.Ops {
		if o.Answered() {
			r.report.Answered++
		} else {
			r.report.Unknown++
		}
	}
	if r.c != nil {
		r.report.Elections = r.c.Elections()
	}
}

// enough returns an error that says why the run proves nothing.
func (r *run) enough() error {
	if r.report.Rate() < r.cfg.Rate {
		return fmt.Errorf("%w: %.0f operations a second are fewer than %.0f", ErrVoid, r.report.Rate(), r.cfg.Rate)
	}
	if r.report.Elections < 2 {
		return fmt.Errorf("%w: no leader was ever replaced", ErrVoid)
	}
	return nil
}
