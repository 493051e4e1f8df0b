package gray

import (
	"context"
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest scheme uses SHA-1
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/process"
)

const (
	// movers is the number of sessions on five servers, two of which are cut off.
	movers = 60
	// moversTime is how long they are observed.
	moversTime = 30 * time.Second
	// mostExpired is how many sessions may expire: ZooKeeper loses about as many.
	mostExpired = 15
	// refusal is how soon a server that cannot serve must say so.
	refusal = time.Second
)

// minority cuts two of five servers off from the others while all five have sessions with short
// timeouts, and counts the sessions that expire.
func (b *bench) minority(timeouts []time.Duration) error {
	for _, timeout := range timeouts {
		name := fmt.Sprintf("two of five servers cut off, 60 sessions with T = %.0f s", timeout.Seconds())
		if !b.chosen(clientTable, name) {
			continue
		}
		e, err := b.start(Settings{Servers: 5})
		if err != nil {
			return err
		}
		expired, err := e.moving(timeout)
		e.close()
		if err != nil {
			return err
		}
		b.report(Row{Table: clientTable, Scenario: name, Program: b.program.Name, Trials: 1,
			Values: []Value{{What: "sessions expired", Kind: Number, Count: expired, Most: mostExpired}}})
	}
	return nil
}

// moving counts the sessions that expire when two followers are cut off.
func (e *ensemble) moving(timeout time.Duration) (int, error) {
	_, followers, err := e.leader()
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var expired, connected atomic.Int64
	var wg sync.WaitGroup
	for i := range movers {
		wg.Go(func() {
			m := &mover{e: e, timeout: timeout, rnd: rand.New(rand.NewPCG(1, uint64(i))), at: i}
			m.run(ctx, &connected, &expired)
		})
	}
	if err := eventually("all sessions are open", patience, func() bool { return connected.Load() == movers }); err != nil {
		return 0, err
	}
	e.isolate(followers[0], followers[1])
	stay(moversTime)
	stop()
	wg.Wait()
	return int(expired.Load()), nil
}

// mover is a client that behaves like ZooKeeper's: it pings after a third of its
// session timeout, gives up a silent server after two thirds, waits at most the
// timeout divided by the number of servers for a connection, and pauses for up to
// a second before it tries another server.
type mover struct {
	e       *ensemble
	timeout time.Duration
	rnd     *rand.Rand
	at      int
}

func (m *mover) run(ctx context.Context, connected, expired *atomic.Int64) {
	var id int64
	var password []byte
	for ctx.Err() == nil {
		c, err := m.connect(ctx, id, password)
		switch {
		case errors.Is(err, proto.ErrSessionExpired):
			expired.Add(1)
			return
		case err != nil:
			m.at++
			pause(ctx, time.Duration(m.rnd.Int64N(int64(time.Second))))
			continue
		}
		if id == 0 {
			connected.Add(1)
		}
		id, password, c.Limit = c.Session, c.Password, m.timeout*2/3-m.timeout/3
		stop := context.AfterFunc(ctx, func() { c.Close() })
		for err = nil; err == nil && ctx.Err() == nil; {
			if _, err = c.Do(proto.OpPing, nil); err == nil {
				pause(ctx, m.timeout/3)
			}
		}
		stop()
		c.Close()
		m.at++
	}
}

func (m *mover) connect(ctx context.Context, id int64, password []byte) (*process.Client, error) {
	limit := m.timeout / time.Duration(len(m.e.servers))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	conn, err := m.e.clients.Dial(ctx, m.e.servers[m.at%len(m.e.servers)].addr())
	if err != nil {
		return nil, err
	}
	return process.Attach(conn, id, password, m.timeout, max(limit-time.Since(began), time.Millisecond))
}

// refusals measures how long a server without a quorum, and a server that was
// removed, keep a client waiting that asks for a session.
func (b *bench) refusals() error {
	const cutOff, removed = "a server without a quorum is asked for a session", "a server removed by reconfig is asked for a session"
	if b.chosen(clientTable, cutOff) {
		if err := b.refuse(cutOff, Settings{}, func(e *ensemble, s *server) error { e.isolate(s); return nil }); err != nil {
			return fmt.Errorf("%s: %w", cutOff, err)
		}
	}
	if b.chosen(clientTable, removed) {
		set := Settings{Lines: []string{"reconfigEnabled=true", "DigestAuthenticationProvider.superDigest=" + superDigest()}}
		if err := b.refuse(removed, set, remove); err != nil {
			return fmt.Errorf("%s: %w", removed, err)
		}
	}
	return nil
}

// superUser administers the ensembles that change their members.
const superUser = "super:gray"

func superDigest() string {
	sum := sha1.Sum([]byte(superUser)) //nolint:gosec // ZooKeeper's digest scheme uses SHA-1
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}

// remove removes a server from the ensemble.
func remove(e *ensemble, s *server) error {
	leader, _, err := e.leader()
	if err != nil {
		return err
	}
	p := &probes{e: e, load: load{timeout: 30 * time.Second}}
	c, err := p.connect(context.Background(), leader, 0, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Limit = patience
	if err := c.Auth("digest", superUser); err != nil {
		return err
	}
	_, err = c.Do(proto.OpReconfig, &proto.ReconfigRequest{Joining: proto.NullString, Leaving: fmt.Sprint(s.id),
		NewMembers: proto.NullString, CurConfigID: -1})
	return err
}

func (b *bench) refuse(name string, set Settings, harm func(*ensemble, *server) error) error {
	e, err := b.start(set)
	if err != nil {
		return err
	}
	defer e.close()
	_, followers, err := e.leader()
	if err != nil {
		return err
	}
	s := followers[0]
	if err := harm(e, s); err != nil {
		return err
	}
	err = eventually("it does not serve", patience, func() bool { return s.status().Mode == "" })
	if err != nil && b.program.Name != zkgo {
		return nil // ZooKeeper keeps serving after it was removed: there is nothing to measure
	}
	if err != nil {
		return err
	}
	var slowest time.Duration
	for range 5 {
		took, err := e.refused(s)
		if err != nil {
			return err
		}
		slowest = max(slowest, took)
	}
	b.report(Row{Table: clientTable, Scenario: name, Program: b.program.Name, Trials: 5,
		Values: []Value{{What: "refused after", Took: slowest, Limit: refusal}}})
	return nil
}

// refused asks for a session that the server cannot open, and returns the time until the refusal.
func (e *ensemble) refused(s *server) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	conn, err := e.clients.Dial(ctx, s.addr())
	if err == nil {
		_, err = process.Attach(conn, 0, nil, 10*time.Second, patience)
	}
	if err == nil {
		return 0, fmt.Errorf("server %d opens a session", s.id)
	}
	return time.Since(began), nil
}
