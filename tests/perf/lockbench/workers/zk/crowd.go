package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
)

// parent waits in the naive way that causes a herd: it watches the directory and checks
// whether it is first whenever anything changes there. We implement only as much of a lock
// as we need to count the cost.
type parent struct {
	conn recipes.Conn
	dir  string
	mine string
}

func (p *parent) Acquire(ctx context.Context) error {
	s, err := p.conn.Session(ctx)
	if err != nil {
		return err
	}
	if err := recipes.EnsureContainers(ctx, s, p.dir); err != nil {
		return err
	}
	if p.mine, err = s.Create(ctx, p.dir+"/n-", nil, recipes.EphemeralSequential, nil); err != nil {
		return err
	}
	for {
		names, _, w, err := s.ChildrenW(ctx, p.dir)
		if err != nil {
			return err
		}
		if strings.HasSuffix(p.mine, "/"+slices.Min(names)) {
			return nil
		}
		select {
		case <-w.Events():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *parent) Release(ctx context.Context) error {
	s, err := p.conn.Session(ctx)
	if err != nil {
		return err
	}
	return s.Delete(ctx, p.mine, client.AnyVersion)
}

// crowd makes clients wait for one lock and releases it several times. It measures the time until
// the next client has the lock, and how many packets the server receives and sends for that,
// according to its mntr.
func crowd(ctx context.Context, dial load.Dial, j load.Job, releases int) (load.Result, error) {
	own, err := askingCosts(j.Addrs[0]) // while there is no other traffic
	if err != nil {
		return load.Result{}, err
	}
	clients, err := dialAll(ctx, dial, j)
	if err != nil {
		return load.Result{}, err
	}
	defer closeAll(clients)
	locks := make([]load.Lock, len(clients))
	for i, c := range clients {
		locks[i] = c.Lock(j.Root + "-crowd")
	}
	if err := locks[0].Acquire(ctx); err != nil {
		return load.Result{}, err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int, len(clients))
	failed := make(chan error, len(clients))
	for i, l := range locks[1:] {
		go func() {
			if err := l.Acquire(waiting); err != nil {
				failed <- err
				return
			}
			next <- i + 1
		}()
	}
	var took, packets []float64
	for holder, round := 0, 0; round < releases; round++ {
		before, _, err := settled(ctx, j.Addrs[0], len(clients)-1-round)
		if err != nil {
			return load.Result{}, err
		}
		began := time.Now()
		if err := locks[holder].Release(ctx); err != nil {
			return load.Result{}, err
		}
		select {
		case holder = <-next:
			took = append(took, float64(time.Since(began).Microseconds()))
		case err := <-failed:
			return load.Result{}, err
		}
		after, asked, err := settled(ctx, j.Addrs[0], len(clients)-2-round)
		if err != nil {
			return load.Result{}, err
		}
		packets = append(packets, float64(after-before-asked*own))
	}
	slices.Sort(took)
	slices.Sort(packets)
	return load.Result{HandOffs: releases, HandOff50: took[len(took)/2], Packets: packets[len(packets)/2]}, nil
}

// dialAll opens the clients, some at a time.
func dialAll(ctx context.Context, dial load.Dial, j load.Job) ([]load.Client, error) {
	clients, errs := make([]load.Client, j.Clients), make(chan error, j.Clients)
	places := make(chan struct{}, 100)
	for i := range clients {
		go func() {
			places <- struct{}{}
			var err error
			clients[i], err = dial(ctx, j.Addrs)
			<-places
			errs <- err
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	return clients, nil
}

func closeAll(clients []load.Client) {
	done := make(chan struct{})
	for _, c := range clients {
		go func() {
			_ = c.Close() // the session expires if this fails
			done <- struct{}{}
		}()
	}
	for range clients {
		<-done
	}
}

// settled waits until at least so many watches are set, and a little longer. It returns
// how many packets the server has received and sent, and how often settled asked for that.
func settled(ctx context.Context, addr string, watches int) (packets, asked int, err error) {
	for asked = 1; ; asked++ {
		m, err := mntr(addr)
		if err != nil {
			return 0, 0, err
		}
		if m["zk_watch_count"] >= watches {
			if err := recipe.Sleep(ctx, 50*time.Millisecond); err != nil {
				return 0, 0, err
			}
			m, err := mntr(addr)
			return counted(m), asked + 1, err
		}
		if err := recipe.Sleep(ctx, 5*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
}

func counted(m map[string]int) int { return m["zk_packets_received"] + m["zk_packets_sent"] }

// askingCosts returns how many packets one mntr request adds to the count.
func askingCosts(addr string) (int, error) {
	cost, before := math.MaxInt, 0
	for i := range 5 {
		m, err := mntr(addr)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			cost = min(cost, counted(m)-before)
		}
		before = counted(m)
	}
	return cost, nil
}

// mntr reads the server's numeric mntr values.
func mntr(addr string) (map[string]int, error) {
	text, err := process.Word(addr, "mntr", process.Patience)
	if err != nil {
		return nil, err
	}
	m := map[string]int{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			if f, err := strconv.ParseFloat(value, 64); err == nil {
				m[name] = int(f)
			}
		}
	}
	if _, ok := m["zk_watch_count"]; !ok {
		return nil, fmt.Errorf("mntr of %s: %q", addr, text)
	}
	return m, nil
}
