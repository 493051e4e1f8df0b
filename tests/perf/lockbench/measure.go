package lockbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
)

// Options says what to measure and how.
type Options struct {
	Dir      string    // for servers and programs; it must be empty
	Small    bool      // everything, briefly: shows that it works, measures nothing
	Services []string  // only these services; empty means all
	Log      io.Writer // gets a line for each step
}

// bench is one measurement.
type bench struct {
	Options
	effort
	report   *Report
	services map[string]*service
	workers  map[string][]string // command lines
}

// Measure measures everything.
func Measure(o Options) (*Report, error) {
	b := &bench{Options: o, effort: plan(o.Small), report: newReport(o.Small), services: map[string]*service{}, workers: map[string][]string{}}
	defer b.stop()
	programs, err := buildPrograms(filepath.Join(o.Dir, "bin"))
	if err != nil {
		return nil, err
	}
	b.workers = programs.workers
	for name, why := range programs.missing {
		b.skip(name, why)
	}
	all := chosen(contenders(), o.Services)
	if err := b.startServices(programs.zkgo, all); err != nil {
		return nil, err
	}
	if err := b.competitions(all); err != nil {
		return nil, err
	}
	if err := b.crowds(chosen(crowds(), o.Services)); err != nil {
		return nil, err
	}
	b.stop()
	if len(o.Services) == 0 {
		if err := b.failovers(programs.zkgo); err != nil {
			return nil, err
		}
	}
	b.report.Finish()
	return b.report, nil
}

func (b *bench) stop() {
	for _, s := range b.services {
		s.Kill()
	}
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(b.Log, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// skip records why a service is left out.
func (b *bench) skip(name string, why error) {
	b.report.Skipped[name] = why.Error()
	b.logf("%s is left out: %v", name, why)
}

// startServices starts the services that the contenders need and this machine has.
func (b *bench) startServices(zkgoBinary string, all []contender) error {
	dir := b.Dir
	makers := map[string]func() (*service, error){
		"zkgo-1":         func() (*service, error) { return zkgo(dir, zkgoBinary, 1) },
		"zkgo-3":         func() (*service, error) { return zkgo(dir, zkgoBinary, 3) },
		"zookeeper-1":    func() (*service, error) { return zooKeeper(dir, 1) },
		"zookeeper-3":    func() (*service, error) { return zooKeeper(dir, 3) },
		"etcd-1":         func() (*service, error) { return etcd(dir, 1) },
		"etcd-3":         func() (*service, error) { return etcd(dir, 3) },
		"redis-1":        func() (*service, error) { return redisServers(dir, 1, "no") },
		"redis-1-always": func() (*service, error) { return redisServers(dir, 1, "always") },
		"redis-5-always": func() (*service, error) { return redisServers(dir, 5, "always") },
	}
	for _, c := range all {
		if b.services[c.service] != nil || b.report.Skipped[c.service] != "" {
			continue
		}
		s, err := makers[c.service]()
		if err != nil {
			b.skip(c.service, err)
			continue
		}
		b.services[c.service] = s
		if err := s.Start(); err != nil {
			return err
		}
		b.logf("%s serves", c.service)
	}
	return nil
}

// competitions gives every contender its turns: one uncounted turn to warm up the servers,
// then the rounds.
func (b *bench) competitions(all []contender) error {
	warmed := map[string]bool{}
	for _, c := range all {
		if b.services[c.service] == nil || b.workers[c.worker] == nil || warmed[c.service] {
			continue
		}
		warmed[c.service] = true
		for _, shape := range []string{load.Own, load.Shared} {
			if _, err := b.run(c, shape, 3*b.counted/2, 8); err != nil {
				return fmt.Errorf("%s, %s: %w", c.key(), shape, err)
			}
		}
	}
	for round := range b.rounds {
		for _, c := range all {
			if b.services[c.service] == nil || b.workers[c.worker] == nil {
				continue
			}
			row := b.report.row(c, b.services[c.service].durable)
			turns := map[string]*[]load.Result{load.Own: &row.Own, load.Shared: &row.Shared, load.Worked: &row.Worked}
			for _, shape := range []string{load.Own, load.Shared, load.Worked} {
				r, err := b.run(c, shape, b.counted, 8)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.key(), shape, err)
				}
				*turns[shape] = append(*turns[shape], r)
				b.logf("%d  %-24s %-7s %7.0f/s  hand-off %6.2f ms, p99 %6.2f  longest wait %7.1f ms  overlaps %d", round+1, c.key(), shape,
					perSecond(r), r.HandOff50/1000, r.HandOff99/1000, r.WaitMax/1000, r.Overlaps)
			}
		}
	}
	return nil
}

// crowds counts the packets of a release while a crowd waits.
func (b *bench) crowds(all []contender) error {
	for _, c := range all {
		if b.services[c.service] == nil {
			continue
		}
		r, err := b.run(c, "crowd", 0, b.crowd+1, "-releases", strconv.Itoa(b.releases))
		if err != nil {
			return fmt.Errorf("%s, a crowd: %w", c.key(), err)
		}
		b.report.Crowds = append(b.report.Crowds, Crowd{c.service, c.kind, c.label, b.effort.crowd, b.releases, r.Packets, r.HandOff50})
		b.logf("%-27s %d wait  %6.0f packets a release, hand-off %8.2f ms", c.key(), b.effort.crowd, r.Packets, r.HandOff50/1000)
	}
	return nil
}

// failovers shows what happens to a lock when a server fails.
func (b *bench) failovers(zkgoBinary string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ours, err := ZkgoFailover(ctx, filepath.Join(b.Dir, "failover-zkgo"), zkgoBinary)
	if err != nil {
		return fmt.Errorf("zkgo's failover: %w", err)
	}
	if _, missing := b.report.Skipped["redis-1"]; !missing {
		theirs, err := RedisFailover(ctx, filepath.Join(b.Dir, "failover-redis"))
		if err != nil {
			return fmt.Errorf("Redis's failover: %w", err)
		}
		b.report.Failovers = append(b.report.Failovers, *theirs)
	}
	b.report.Failovers = append(b.report.Failovers, *ours)
	for _, t := range b.report.Failovers {
		b.logf("%s\n%s", t.Name, t.String())
	}
	return nil
}

// limit bounds a program that should need seconds.
const limit = 3 * time.Minute

// run runs one job with a contender's program.
func (b *bench) run(c contender, shape string, counted time.Duration, clients int, more ...string) (load.Result, error) {
	command := b.workers[c.worker]
	if command == nil {
		return load.Result{}, errors.New("its program is missing")
	}
	addrs := strings.Join(b.services[c.service].Addrs(), ",")
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := append(command[1:len(command):len(command)], "-kind", c.kind, "-shape", shape, "-addrs", addrs, "-clients", strconv.Itoa(clients),
		"-warm", millis(c.warm), "-for", millis(counted))
	cmd := exec.CommandContext(ctx, command[0], append(args, more...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return load.Result{}, err
	}
	return result(out, shape)
}

// result parses a program's output: a result, or, from a program in another language, the
// holdings to compute it from.
func result(out []byte, shape string) (load.Result, error) {
	var r struct {
		load.Result
		From, Until int64      // nanoseconds on some clock
		Holdings    [][4]int64 // client, asked, held, released
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r.Result, fmt.Errorf("%q for a result: %w", out, err)
	}
	if r.Until == 0 {
		return r.Result, nil
	}
	at := func(nanos int64) time.Time { return time.Unix(0, nanos) }
	var line []load.Holding
	for _, h := range r.Holdings {
		line = append(line, load.Holding{Client: int(h[0]), Asked: at(h[1]), Held: at(h[2]), Released: at(h[3])})
	}
	return load.Judge(line, shape, at(r.From), at(r.Until)), nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
