package faultnet

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	chunkSize = 32 << 10
	// inFlight bounds the number of chunks in one direction of a connection.
	inFlight = 64
)

// chunk is data in transit, or the end of the stream.
type chunk struct {
	data []byte
	due  time.Time
	err  error // io.EOF: the sender has closed its side; others: it is gone
}

// pair is one connection: the end that dialled and the end that was dialled.
type pair struct {
	a, b  *net.TCPConn
	ended chan struct{}
	once  sync.Once
	gone  func(dialler bool) // called when an end has closed, before the other end is notified
}

func newPair(a, b *net.TCPConn) *pair { return &pair{a: a, b: b, ended: make(chan struct{})} }

// reset breaks the connection at both ends.
func (p *pair) reset() {
	p.once.Do(func() {
		close(p.ended)
		for _, c := range []*net.TCPConn{p.a, p.b} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	})
}

// run carries bytes both ways until both directions have ended.
func (p *pair) run(there, back *Link, first []byte) {
	var wg sync.WaitGroup
	wg.Go(func() { p.direction(p.a, p.b, there, first) })
	wg.Go(func() { p.direction(p.b, p.a, back, nil) })
	wg.Wait()
	p.once.Do(func() { close(p.ended) })
	_ = p.a.Close()
	_ = p.b.Close()
}

// direction carries bytes one way.
func (p *pair) direction(from, to *net.TCPConn, link *Link, first []byte) {
	queue := make(chan chunk, inFlight)
	go p.collect(from, link, first, queue)
	for c := range queue {
		if !p.await(c.due) || !link.pass(p.ended) {
			return
		}
		switch {
		case c.err == nil:
			if _, err := to.Write(c.data); err != nil {
				p.reset()
				return
			}
		case errors.Is(c.err, io.EOF):
			_ = to.CloseWrite()
		default:
			p.reset()
		}
	}
}

// collect reads the data that an end sends. It never waits for the link.
func (p *pair) collect(from *net.TCPConn, link *Link, first []byte, queue chan<- chunk) {
	defer close(queue)
	var last time.Time
	put := func(c chunk) bool {
		if c.due = link.due(time.Now()); c.due.Before(last) {
			c.due = last
		}
		last = c.due
		select {
		case queue <- c:
			return true
		case <-p.ended:
			return false
		}
	}
	if len(first) > 0 && !put(chunk{data: first}) {
		return
	}
	buf := make([]byte, chunkSize)
	for {
		n, err := from.Read(buf)
		if n > 0 && !put(chunk{data: append([]byte(nil), buf[:n]...)}) {
			return
		}
		if err != nil {
			if p.gone != nil {
				p.gone(from == p.a)
			}
			put(chunk{err: err})
			return
		}
	}
}

// await waits until t. It returns false if the connection has ended.
func (p *pair) await(t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ended:
		return false
	}
}
