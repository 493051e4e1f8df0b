package discovery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Strategy chooses one of the instances. The list has at least one and is sorted by
// id. A Strategy must be safe for concurrent use.
type Strategy[P any] interface {
	Choose(list []Instance[P]) Instance[P]
}

// StrategyFunc adapts a function to a [Strategy].
type StrategyFunc[P any] func(list []Instance[P]) Instance[P]

// Choose calls f.
func (f StrategyFunc[P]) Choose(list []Instance[P]) Instance[P] { return f(list) }

// RoundRobin chooses one instance after another.
func RoundRobin[P any]() Strategy[P] {
	var next atomic.Uint64
	return StrategyFunc[P](func(list []Instance[P]) Instance[P] {
		return list[(next.Add(1)-1)%uint64(len(list))]
	})
}

// Random chooses a random instance.
func Random[P any]() Strategy[P] {
	return StrategyFunc[P](func(list []Instance[P]) Instance[P] { return list[rand.IntN(len(list))] })
}

// Sticky chooses the same instance as before while it exists. Otherwise it uses first to
// choose one.
func Sticky[P any](first Strategy[P]) Strategy[P] {
	var mu sync.Mutex
	var id string
	return StrategyFunc[P](func(list []Instance[P]) Instance[P] {
		mu.Lock()
		defer mu.Unlock()
		if i := slices.IndexFunc(list, func(x Instance[P]) bool { return x.ID == id }); i >= 0 {
			return list[i]
		}
		chosen := first.Choose(list)
		id = chosen.ID
		return chosen
	})
}

// DownPolicy determines when an instance counts as down: after Errors errors, for Timeout
// since the first.
type DownPolicy struct {
	Errors  int
	Timeout time.Duration
}

// defaultDownPolicy is the initial policy of a Provider, the same as Curator's.
func defaultDownPolicy() DownPolicy { return DownPolicy{Errors: 2, Timeout: 30 * time.Second} }

// Provider chooses among the instances of a service. All methods are safe for
// concurrent use.
type Provider[P any] struct {
	service  *Service[P]
	strategy Strategy[P]
	filters  []func(Instance[P]) bool
	policy   DownPolicy

	mu   sync.Mutex
	down map[string]trouble // by id
}

// trouble records the errors of an instance.
type trouble struct {
	errors int
	since  time.Time
}

// NewProvider returns a provider of instances of a service, which the caller must
// close. Instances count as down for 30 seconds after two errors; see WithDownPolicy.
func NewProvider[P any](s *Service[P], strategy Strategy[P], filters ...func(Instance[P]) bool) *Provider[P] {
	return &Provider[P]{service: s, strategy: strategy, filters: filters, policy: defaultDownPolicy(), down: map[string]trouble{}}
}

// WithDownPolicy returns a provider with another policy and no recorded errors.
func (p *Provider[P]) WithDownPolicy(policy DownPolicy) *Provider[P] {
	return &Provider[P]{service: p.service, strategy: p.strategy, filters: p.filters, policy: policy, down: map[string]trouble{}}
}

// Get returns an instance that is enabled, not down, and passes the filters, or
// [ErrNotFound]. It waits only until it has read the instances for the first time: without a
// connection, it chooses among the last known instances.
func (p *Provider[P]) Get(ctx context.Context) (Instance[P], error) {
	list := p.All()
	if len(list) == 0 {
		if err := p.service.Wait(ctx); err != nil {
			return Instance[P]{}, err
		}
		list = p.All()
	}
	if len(list) == 0 {
		return Instance[P]{}, fmt.Errorf("service %s: %w", p.service.dir, ErrNotFound)
	}
	return p.strategy.Choose(list), nil
}

// All returns the instances from which Get chooses.
func (p *Provider[P]) All() []Instance[P] {
	return slices.DeleteFunc(p.service.Instances(), func(i Instance[P]) bool {
		return i.Disabled || p.isDown(i.ID) || slices.ContainsFunc(p.filters, func(keep func(Instance[P]) bool) bool { return !keep(i) })
	})
}

// NoteError records that an instance could not be used.
func (p *Provider[P]) NoteError(i Instance[P]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, t := range p.down {
		if time.Since(t.since) >= p.policy.Timeout {
			delete(p.down, id)
		}
	}
	t, noted := p.down[i.ID]
	if !noted {
		t.since = time.Now()
	}
	t.errors++
	p.down[i.ID] = t
}

func (p *Provider[P]) isDown(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, noted := p.down[id]
	return noted && t.errors >= p.policy.Errors && time.Since(t.since) < p.policy.Timeout
}
