package lock

import (
	"context"
	"sync"
)

// Owner identifies the holder of a reentrant lock. Goroutines have no identity, so we pass
// the owner in the context.
//
//	ctx = lock.WithOwner(ctx)
//	outer, err := m.Acquire(ctx)
//	inner, err := m.Acquire(ctx) // immediately
//
// An owner has a meaning only within one Mutex, RWMutex or LeaseLock value. Without
// an owner, every Acquire counts as a different holder.
type Owner struct{ _ byte }

type ownerKey struct{}

// WithOwner returns a context with a new owner.
func WithOwner(ctx context.Context) context.Context { return new(Owner).Context(ctx) }

// Context returns a context with this owner.
func (o *Owner) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, o)
}

// OwnerOf returns the owner in a context, or nil.
func OwnerOf(ctx context.Context) *Owner {
	o, _ := ctx.Value(ownerKey{}).(*Owner)
	return o
}

// owners records the grants of each owner of one lock.
type owners struct {
	mu   sync.Mutex
	held map[*Owner]*ownership
}

// ownership is a grant that an owner holds or waits for.
type ownership struct {
	ready chan struct{} // closed when grant is final
	grant *grant        // nil if the acquire failed
}

// acquire returns a lease on the grant that ctx's owner holds, or else on the grant
// that get returns.
func (o *owners) acquire(ctx context.Context, get func() (*grant, error)) (*Lease, error) {
	owner := OwnerOf(ctx)
	if owner == nil {
		g, err := get()
		if err != nil {
			return nil, err
		}
		return &Lease{g: g}, nil
	}
	for {
		own, first := o.enter(owner)
		if first {
			return o.decide(owner, own, get)
		}
		select {
		case <-own.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if own.grant == nil {
			continue
		}
		if l, err := own.grant.again(); l != nil || err != nil {
			return l, err
		}
		<-own.grant.done // we are releasing the grant
	}
}

// enter returns the owner's ownership, and true if the caller must decide it.
func (o *owners) enter(owner *Owner) (*ownership, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if own := o.held[owner]; own != nil {
		return own, false
	}
	if o.held == nil {
		o.held = map[*Owner]*ownership{}
	}
	own := &ownership{ready: make(chan struct{})}
	o.held[owner] = own
	return own, true
}

func (o *owners) decide(owner *Owner, own *ownership, get func() (*grant, error)) (*Lease, error) {
	g, err := get()
	if err != nil {
		o.leave(owner)
		close(own.ready)
		return nil, err
	}
	g.free = func() { o.leave(owner) }
	own.grant = g
	close(own.ready)
	return &Lease{g: g}, nil
}

func (o *owners) leave(owner *Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.held, owner)
}

// grantOf returns the grant that an owner holds, or nil.
func (o *owners) grantOf(owner *Owner) *grant {
	o.mu.Lock()
	own := o.held[owner]
	o.mu.Unlock()
	if own == nil {
		return nil
	}
	select {
	case <-own.ready:
		return own.grant
	default:
		return nil
	}
}
