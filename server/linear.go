package server

import (
	"context"
	"sync"
)

// Linearizable reads. A server answers reads from its own copy, which may lag
// behind what another client was told. A client that must not see that asks for
// linearizable reads: by the configuration of the server, for its session by an
// auth packet, or for one read by a sync right before it.
//
// A reader that meets such a read waits until this server has applied everything
// that had been acknowledged anywhere when the read arrived. What arrived together
// waits once. Being its connection's only goroutine that proposes, it keeps the
// order among the client's requests by standing still.

const (
	// schemeOptions is the scheme of an auth packet that proves nothing but asks
	// for something: every client library sends its auth packets again on a new
	// connection.
	schemeOptions = "zkgo"

	optionLinearizable = "reads=linearizable"
	optionSequential   = "reads=sequential"
)

// setOption does what an auth packet of schemeOptions asks for, and reports false
// for what nobody knows: a client must not believe it has what it has not.
func (c *conn) setOption(option string) bool {
	switch option {
	case optionLinearizable:
		c.linear = true
	case optionSequential:
		c.linear = false
	default:
		return false
	}
	return true
}

// barriers are the connections whose readers wait.
type barriers struct {
	mu      sync.Mutex
	waiting []*conn
	poke    chan struct{} // capacity 1
}

// barrier waits until what has arrived can be answered as of its arrival. It
// reports false when the connection was closed meanwhile.
func (c *conn) barrier(w *work) bool {
	c.current = true
	if c.local || !c.s.gated {
		return true
	}
	c.settle(w)
	c.flush()
	c.barred.Store(true)
	b := &c.s.barriers
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()
	select {
	case b.poke <- struct{}{}:
	default:
	}
	return c.await(func() bool { return !c.barred.Load() })
}

// passBarriers asks the ensemble on behalf of all who wait. Whoever comes while
// it is being asked waits for the next answer.
func (s *Server) passBarriers() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.spawn(func() {
		<-s.done
		cancel()
	})
	b := &s.barriers
	for {
		select {
		case <-b.poke:
		case <-s.done:
			return
		}
		b.mu.Lock()
		all := b.waiting
		b.waiting = nil
		b.mu.Unlock()
		if s.node.Barrier(ctx) != nil {
			return // closing, and the connections with it
		}
		for _, c := range all {
			c.mu.Lock()
			c.barred.Store(false)
			c.wakeReader()
			c.mu.Unlock()
		}
	}
}

// waits reports whether c's client waits for us, which is why it may not be
// heard.
func (c *conn) waits() bool { return c.waiting.Load() != 0 || c.barred.Load() }
