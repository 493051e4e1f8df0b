package server

import (
	"context"
	"sync"
)

// Linearizable reads. A server answers reads from its own copy, which may be older than the
// state that another client has seen. A client that needs more asks for linearizable reads:
// in the server's configuration, for its session with an auth packet, or for one read with a
// sync right before it.
//
// Before such a read, the reader waits until this server has applied everything that
// any server had acknowledged when the read arrived. Reads that arrived together wait
// once. The reader is the only goroutine that proposes for its connection, so while it
// waits, the client's requests stay in order.

const (
	optionLinearizable = "reads=linearizable"
	optionSequential   = "reads=sequential"
)

// setOption sets the option that an auth packet of schemes.Options names. It returns
// false for an unknown option, so that a client never assumes one that isn't set.
func (cs *clientSession) setOption(option string) bool {
	switch option {
	case optionLinearizable:
		cs.linear = true
	case optionSequential:
		cs.linear = false
	default:
		return false
	}
	return true
}

// barriers is the list of connections with waiting readers.
type barriers struct {
	mu      sync.Mutex
	waiting []*conn
	poke    chan struct{} // capacity 1
}

// barrier waits until the input can be answered as of its arrival. It returns false if
// the connection is closed first.
func (r *reader) barrier(w *work) bool {
	c := r.c
	r.current = true
	if c.session.local || !c.s.contact.gated {
		return true
	}
	r.settle(w)
	c.replies.flush()
	c.replies.barred.Store(true)
	b := &c.s.barriers
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()
	select {
	case b.poke <- struct{}{}:
	default:
	}
	return c.replies.awaitUnbarred()
}

// run passes a barrier on behalf of all waiting readers. A reader that arrives during a
// barrier waits for the next one.
func (b *barriers) run(s *Server) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.spawn(func() {
		<-s.done
		cancel()
	})
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
			return // the server and its connections are closing
		}
		for _, c := range all {
			c.replies.unbar()
		}
	}
}
