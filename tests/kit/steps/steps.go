// Package steps runs a piece of work with a ZooKeeper client again and again, and injects a
// fault at each of its requests in turn: the request is lost with its connection, the reply
// is lost, the server of the next connection has not yet applied the write, the session
// expires, the caller's context ends. This way, we test every step of a recipe. Time is
// fake.
//
// It imports client, recipes and server/zktest, and only tests import it.
package steps

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/server/zktest"
)

// Fault is what goes wrong.
type Fault int

// These are the faults.
const (
	None        Fault = iota
	LostRequest       // the connection breaks, the request is not executed
	LostReply         // the request is executed, then the connection breaks
	Expiry            // the session expires just before the request
	Cancel            // the context ends while the request is in flight
	CancelLost        // the context ends, and the request is executed though its reply is lost
	LostBehind        // the reply is lost, and the next server is behind: it has not applied the request
	faults
)

// String returns the fault's name.
func (f Fault) String() string {
	return [...]string{"none", "lost request", "lost reply", "expiry", "cancel", "cancel and lost reply", "lost reply and a server behind"}[f]
}

// Env is one run.
type Env struct {
	*testing.T
	Server *zktest.Server
	// Client is the client with the disturbed requests; Conn is the same for recipes. There is no
	// Client if the work runs over another client: see EachOver.
	Client *client.Client
	Conn   recipes.Conn
	// Other is a client with undisturbed requests.
	Other *client.Client
	// Ctx is for the disturbed work. It ends when the fault says so.
	Ctx context.Context
	// Fault happens at request Nth, counted from 1.
	Fault Fault
	Nth   int
}

// Canceled reports whether this run's context ends.
func (e *Env) Canceled() bool { return e.Fault == Cancel || e.Fault == CancelLost }

// Bounded returns a context for what must succeed eventually.
func (e *Env) Bounded() context.Context {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	e.Cleanup(cancel)
	return ctx
}

// Each runs work once undisturbed, counts the requests, and then runs it once for
// every fault at every request; with -short, at every third request. Work has to
// fail the test if a guarantee is broken. before, which may be nil, prepares the
// state and is not disturbed.
func Each(t *testing.T, before, work func(e *Env)) {
	t.Helper()
	EachOver(t, func(e *Env) (recipes.Conn, int64) {
		e.Client = e.Server.Client(e.T)
		return recipes.On(e.Client), e.Client.Session().ID
	}, before, work)
}

// EachOver is Each for another client, which open connects. open returns the
// client's connection for recipes, and its session.
func EachOver(t *testing.T, open func(e *Env) (recipes.Conn, int64), before, work func(e *Env)) {
	t.Helper()
	steps := run(t, None, 0, open, before, work)
	if steps == 0 {
		t.Fatal("no request was made: nothing is tested")
	}
	runs, stride := 1, 1
	if testing.Short() {
		stride = 3
	}
	for f := LostRequest; f < faults; f++ {
		for n := 1 + int(f)%stride; n <= steps; n += stride {
			run(t, f, n, open, before, work)
			runs++
		}
	}
	t.Logf("%d requests, %d runs", steps, runs)
}

// run is one run; it returns how many requests the client made.
func run(t *testing.T, f Fault, n int, open func(e *Env) (recipes.Conn, int64), before, work func(e *Env)) (steps int) {
	t.Helper()
	name := "undisturbed"
	if f != None {
		name = fmt.Sprintf("%v at %d", f, n)
	}
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			zs := zktest.Run(t)
			e := &Env{T: t, Server: zs, Other: zs.Client(t), Fault: f, Nth: n}
			var session int64
			e.Conn, session = open(e)
			if f == LostBehind {
				e.Conn = &behind{Conn: e.Conn, ahead: e.Other}
			}
			if before != nil {
				before(e)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			e.Ctx = ctx
			zs.ForgetRequests()
			planned := e.plan(zktest.Match{Session: session, Nth: n}, cancel)
			work(e)
			steps = zs.Requests(zktest.Match{Session: session})
			if planned != nil {
				planned.Cancel()
			}
			if f == LostBehind {
				time.Sleep(lag)
			}
			synctest.Wait()
		})
	})
	return steps
}

// plan injects the fault.
func (e *Env) plan(m zktest.Match, cancel context.CancelFunc) *zktest.Fault {
	const moment = 10 * time.Millisecond
	switch e.Fault {
	case LostRequest:
		return e.Server.LoseNext(m)
	case LostReply, LostBehind:
		return e.Server.LoseReply(m)
	case Expiry:
		f := e.Server.DelayNext(m, moment)
		go e.when(f, moment/2, func() { e.Server.ExpireSession(m.Session) })
		return f
	case Cancel:
		f := e.Server.DelayNext(m, moment)
		go e.when(f, moment/2, cancel)
		return f
	case CancelLost:
		f := e.Server.LoseReply(m)
		go e.when(f, time.Millisecond, cancel)
		return f
	}
	return nil
}

// when calls do as soon as the fault has begun to happen, if it does. It looks at intervals.
func (e *Env) when(f *zktest.Fault, interval time.Duration, do func()) {
	for !f.Happened() {
		select {
		case <-e.Context().Done():
			return
		case <-time.After(interval):
		}
	}
	do()
}
