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

// Strategy chooses one of the instances, which are at least one and sorted by id. It
// must be safe for concurrent use.
type Strategy[P any] interface {
	Choose(list []Instance[P]) Instance[P]
}

// StrategyFunc is a function as a [Strategy].
type StrategyFunc[P any] func(list []Instance[P]) Instance[P]

// Choose calls f.
func (f StrategyFunc[P]) Choose(list []Instance[P]) Instance[P] { return f(list) }

// RoundRobin chooses one after the other.
func RoundRobin[P any]() Strategy[P] {
	var next atomic.Uint64
	return StrategyFunc[P](func(list []Instance[P]) Instance[P] {
		return list[(next.Add(1)-1)%uint64(len(list))]
	})
}

// Random chooses any.
func Random[P any]() Strategy[P] {
	return StrategyFunc[P](func(list []Instance[P]) Instance[P] { return list[rand.IntN(len(list))] })
}

// Sticky chooses the same as before as long as that is there, and otherwise one as
// first does.
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

// DownPolicy says when an instance counts as down: after Errors were noted, for
// Timeout since the first.
type DownPolicy struct {
	Errors  int
	Timeout time.Duration
}

// defaultDownPolicy is what a Provider begins with, and Curator too.
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

// trouble is what was noted of an instance.
type trouble struct {
	errors int
	since  time.Time
}

// NewProvider returns a provider of instances of a service, which remains the
// caller's to close. Instances count as down for 30 seconds after two errors;
// see WithDownPolicy.
func NewProvider[P any](s *Service[P], strategy Strategy[P], filters ...func(Instance[P]) bool) *Provider[P] {
	return &Provider[P]{service: s, strategy: strategy, filters: filters, policy: defaultDownPolicy(), down: map[string]trouble{}}
}

// WithDownPolicy returns a provider with another policy, which knows of no errors
// yet.
func (p *Provider[P]) WithDownPolicy(policy DownPolicy) *Provider[P] {
	return &Provider[P]{service: p.service, strategy: p.strategy, filters: p.filters, policy: policy, down: map[string]trouble{}}
}

// Get returns an instance that is enabled, not down, and passes the filters;
// [ErrNotFound] if there is none. It waits only until the instances are known for
// the first time: without a connection it chooses among those known last.
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

// All returns the instances among which Get chooses.
func (p *Provider[P]) All() []Instance[P] {
	return slices.DeleteFunc(p.service.Instances(), func(i Instance[P]) bool {
		return i.Disabled || p.isDown(i.ID) || slices.ContainsFunc(p.filters, func(keep func(Instance[P]) bool) bool { return !keep(i) })
	})
}

// NoteError notes that an instance could not be used.
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
