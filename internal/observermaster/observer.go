package observermaster

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// observer is one connection. run sends; a second goroutine reads once the state has been sent.
type observer struct {
	m    *Master
	raw  net.Conn
	conn net.Conn // raw, or TLS over it
	r    *bufio.Reader
	out  []byte

	id     int64
	epoch  int64
	zkgo   bool // it wants the passwords of sessions
	synced bool // it receives each transaction as it is applied; Master.mu guards it

	mu    sync.Mutex
	sent  uint64        // number of the next transaction to send, once synced
	pings []ping        // not confirmed, oldest first
	known time.Time     // when it is known to have had everything
	syncs []uint64      // for each sync to answer, the number of the transaction that follows it
	wake  chan struct{} // has room for one signal that there are more syncs
}

func newObserver(m *Master, conn net.Conn) *observer {
	return &observer{m: m, raw: conn, wake: make(chan struct{}, 1)}
}

// maxPacket limits the data of a packet that an observer sends. The longest one is an answer to
// a ping with the sessions of its clients.
const maxPacket = 64 << 10

// run serves the observer and returns why that ended.
func (o *observer) run() error {
	if err := o.secure(); err != nil {
		return err
	}
	zxid, err := o.register()
	if err != nil {
		return err
	}
	at, err := o.catchUp(zxid)
	if err != nil {
		return err
	}
	if err := o.send(zab.Packet{Kind: zab.KindNewLeader, Zxid: o.epoch << 32, Data: o.members()}); err != nil {
		return err
	}
	if p, err := o.read(o.m.cfg.loading()); err != nil || p.Kind != zab.KindAck {
		return errors.Join(fmt.Errorf("it has answered NEWLEADER with %v", p.Kind), err)
	}
	if err := o.send(zab.Packet{Kind: zab.KindUpToDate}); err != nil {
		return err
	}
	o.note(func() { o.sent, o.known = at.next, time.Now() })
	o.m.mu.Lock()
	o.synced = true
	o.m.mu.Unlock()
	o.m.cfg.Logger.Info("an observer is up to date", "from", o.raw.RemoteAddr().String(), "id", o.id)
	heard := make(chan error, 1)
	go func() { heard <- o.listen() }()
	err = o.follow(at, heard)
	_ = o.raw.Close() // ends listen
	if ended := <-heard; err == nil {
		err = ended
	}
	return err
}

// register reads the observer's number and newest zxid.
func (o *observer) register() (zxid int64, err error) {
	p, err := o.read(o.m.cfg.silence())
	switch {
	case err != nil:
		return 0, err
	case p.Kind != zab.KindObserverInfo:
		return 0, fmt.Errorf("it begins with %v: only observers are served here", p.Kind)
	}
	d := proto.NewReader(p.Data)
	o.id = d.Long()
	if version := d.Int(); d.Err() != nil || version != zab.ProtocolVersion {
		return 0, fmt.Errorf("it speaks version %#x of the protocol, we know %#x", version, zab.ProtocolVersion)
	}
	_, last := o.m.cfg.History.end()
	o.epoch = zab.EpochOf(last)
	extension := zab.Extension
	if source := o.m.cfg.Source; source != nil {
		copies, err := source()
		if err != nil {
			return 0, err
		}
		if copies {
			extension = zab.ExtensionOfMirror
		}
	}
	info := append(proto.AppendInt(nil, zab.ProtocolVersion), extension...)
	if err := o.send(zab.Packet{Kind: zab.KindLeaderInfo, Zxid: o.epoch << 32, Data: info}); err != nil {
		return 0, err
	}
	p, err = o.read(o.m.cfg.silence())
	switch {
	case err != nil:
		return 0, err
	case p.Kind != zab.KindAckEpoch:
		return 0, fmt.Errorf("it has answered LEADERINFO with %v", p.Kind)
	}
	o.zkgo = len(p.Data) > 4 && string(p.Data[4:]) == zab.Extension
	return p.Zxid, nil
}

// catchUp sends the transactions that an observer with that zxid lacks, and returns the position after them.
func (o *observer) catchUp(zxid int64) (at cursor, err error) {
	at, last, state, err := o.begin(zxid)
	if err != nil {
		return at, err
	}
	if state != nil {
		defer state.snap.Release()
		return at, o.sendState(last, state)
	}
	o.m.cfg.Logger.Info("sending the missing transactions to an observer", "from", o.raw.RemoteAddr().String(), "id", o.id, "its zxid", fmt.Sprintf("0x%x", zxid), "ours", fmt.Sprintf("0x%x", last))
	if err := o.send(zab.Packet{Kind: zab.KindDiff, Zxid: last}); err != nil {
		return at, err
	}
	for zxid < last {
		list, _, err := at.take()
		if err != nil {
			return at, err
		}
		for _, e := range list {
			if zab.EpochOf(e.zxid) > o.epoch {
				return at, errEpoch
			}
			o.out = zab.AppendPacket(o.out, zab.Packet{Kind: zab.KindProposal, Zxid: e.zxid, Data: o.encode(e)})
			o.out = zab.AppendPacket(o.out, zab.Packet{Kind: zab.KindCommit, Zxid: e.zxid})
			zxid = e.zxid
			if err := o.flushAbove(flushSize); err != nil {
				return at, err
			}
		}
	}
	return at, o.flushAbove(0)
}

// state is the state at one moment.
type state struct {
	snap     *tree.Snapshot
	sessions *session.Table
}

// begin returns the position in the History from which to send transactions. If those don't lead
// from zxid to our state, it also returns the whole state at that position.
func (o *observer) begin(zxid int64) (at cursor, last int64, s *state, err error) {
	cfg := &o.m.cfg
	cfg.Tree.Lock()
	defer cfg.Tree.Unlock()
	last = cfg.Tree.LastZxid()
	at, leads, err := cfg.History.after(zxid)
	switch {
	case err != nil:
		return at, last, nil, err
	case zab.EpochOf(last) != o.epoch:
		return at, last, nil, errEpoch
	case leads:
		return at, last, nil, nil
	}
	return at, last, &state{cfg.Tree.Snapshot(), cfg.Sessions.Clone()}, nil
}

// sendState sends the whole state.
func (o *observer) sendState(zxid int64, s *state) error {
	log := o.m.cfg.Logger.With("from", o.raw.RemoteAddr().String(), "id", o.id, "zxid", fmt.Sprintf("0x%x", zxid))
	log.Info("sending a snapshot to an observer")
	began := time.Now()
	if err := o.send(zab.Packet{Kind: zab.KindSnap, Zxid: zxid}); err != nil {
		return err
	}
	if err := o.m.cfg.WriteBody(writer{o}, s.snap, s.sessions); err != nil {
		return fmt.Errorf("the snapshot: %w", err)
	}
	if err := o.write(proto.AppendString(nil, zab.SnapshotSignature)); err != nil {
		return err
	}
	if o.zkgo {
		if err := o.sendPasswords(s.sessions); err != nil {
			return err
		}
	}
	log.Info("the snapshot was sent", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// sendPasswords sends the passwords of all sessions. The last packet is shorter than the others,
// and may be empty.
func (o *observer) sendPasswords(sessions *session.Table) error {
	var data []byte
	for row := range sessions.All {
		data = append(proto.AppendLong(data, row.ID), row.Password[:]...)
		if len(data) == zab.PasswordsSize {
			if err := o.send(zab.Packet{Kind: zab.KindPasswords, Data: data}); err != nil {
				return err
			}
			data = data[:0]
		}
	}
	return o.send(zab.Packet{Kind: zab.KindPasswords, Data: data})
}

// members returns the list of servers.
func (o *observer) members() []byte {
	t := o.m.cfg.Tree
	t.RLock()
	defer t.RUnlock()
	return append([]byte{}, t.Get(tree.ConfigPath).Data()...)
}

// errEpoch ends a connection: LEADERINFO, which begins it, names the epoch.
var errEpoch = errors.New("a new epoch has begun")

// flushSize is how many bytes are collected before they are sent.
const flushSize = 64 << 10

// follow sends each transaction as it is applied, and signs of life, until the observer
// disconnects.
func (o *observer) follow(at cursor, heard chan error) error {
	every := o.m.cfg.Tick / 2
	pings := time.NewTicker(every)
	defer pings.Stop()
	pinged := time.Now()
	for {
		list, more, err := at.take()
		if err != nil {
			return err
		}
		for _, e := range list {
			if zab.EpochOf(e.zxid) > o.epoch {
				return errEpoch
			}
			o.out = zab.AppendPacket(o.out, zab.Packet{Kind: zab.KindInform, Zxid: e.zxid, Data: o.encode(e)})
			if err := o.flushAbove(flushSize); err != nil {
				return err
			}
		}
		o.answerSyncs(at.next)
		if time.Since(pinged) >= every {
			pinged = time.Now()
			o.ping(at.next, pinged)
		}
		if err := o.flushAbove(0); err != nil {
			return err
		}
		o.note(func() { o.sent = at.next })
		if len(list) > 0 {
			continue
		}
		select {
		case <-more:
		case <-o.wake:
		case <-pings.C:
		case err := <-heard:
			heard <- err // for run
			return err
		}
	}
}

// ping is a sign of life that the observer confirms after everything that was sent before it.
type ping struct {
	zxid int64
	at   time.Time
	all  bool // everything that was applied at that time had been sent
}

// maxPings limits the pings without a confirmation that we remember.
const maxPings = 1000

// ping queues a ping after the transactions before next.
func (o *observer) ping(next uint64, now time.Time) {
	end, last := o.m.cfg.History.end()
	o.out = zab.AppendPacket(o.out, zab.Packet{Kind: zab.KindPing, Zxid: last})
	o.note(func() {
		if len(o.pings) < maxPings {
			o.pings = append(o.pings, ping{last, now, next == end})
		}
	})
}

// confirmed handles the confirmation of a ping. An observer with many clients confirms a ping
// several times.
func (o *observer) confirmed(zxid int64) {
	o.note(func() {
		if len(o.pings) == 0 || o.pings[0].zxid != zxid {
			return
		}
		if o.pings[0].all {
			o.known = o.pings[0].at
		}
		o.pings = o.pings[1:]
	})
}

func (o *observer) note(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// lag returns how far the observer is from the transaction next.
func (o *observer) lag(next uint64) Lag {
	host, _, err := net.SplitHostPort(o.raw.RemoteAddr().String())
	if err != nil {
		host = o.raw.RemoteAddr().String()
	}
	l := Lag{Observer: fmt.Sprintf("%d@%s", o.id, host)}
	o.note(func() { l.Transactions, l.Behind = int64(next-min(o.sent, next)), time.Since(o.known) })
	return l
}

// encode returns a transaction as the observer reads it. ZooKeeper's observers don't know the
// password in a createSession.
func (o *observer) encode(e entry) []byte {
	if o.zkgo {
		return e.txn
	}
	return zab.WithoutPassword(e.txn)
}

// answerSyncs answers the syncs that came before the transaction next.
func (o *observer) answerSyncs(next uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.syncs) > 0 && o.syncs[0] <= next {
		o.syncs = o.syncs[1:]
		o.out = zab.AppendPacket(o.out, zab.Packet{Kind: zab.KindSync})
	}
}

// listen handles the observer's packets, until the connection fails or it asks for too much.
func (o *observer) listen() error {
	for {
		p, err := o.read(o.m.cfg.silence())
		if err != nil {
			return err
		}
		switch p.Kind {
		case zab.KindAck:
		case zab.KindPing:
			o.confirmed(p.Zxid)
		case zab.KindRequest:
			if err := o.request(p.Data); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unexpected %v: this server only sends its state to observers", p.Kind)
		}
	}
}

// maxSyncs limits the syncs without an answer.
const maxSyncs = 1000

// request handles a sync.
func (o *observer) request(data []byte) error {
	d := proto.NewReader(data)
	id, _, op := d.Long(), d.Int(), proto.Op(d.Int())
	if d.Err() != nil || op != proto.OpSync {
		return fmt.Errorf("a REQUEST (%v of session 0x%x): an observer of zkgo can't write, its clients must write to the ensemble that it follows", op, uint64(id))
	}
	o.mu.Lock()
	waiting := len(o.syncs)
	o.mu.Unlock()
	if waiting >= maxSyncs {
		return fmt.Errorf("more than %d syncs without an answer", maxSyncs)
	}
	return o.m.cfg.Sync(func(err error) {
		if err != nil {
			_ = o.raw.Close() // the observer can't learn otherwise that there is no answer
			return
		}
		next, _ := o.m.cfg.History.end()
		o.mu.Lock()
		o.syncs = append(o.syncs, next)
		o.mu.Unlock()
		select {
		case o.wake <- struct{}{}:
		default:
		}
	})
}

// read reads a packet, which must begin in the given time and arrive in the time for a write.
func (o *observer) read(limit time.Duration) (zab.Packet, error) {
	if err := o.raw.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return zab.Packet{}, err
	}
	p, err := zab.ReadPacket(o.r, maxPacket)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		err = fmt.Errorf("it was not heard for %v: %w", limit, err)
	}
	return p, err
}

func (o *observer) send(p zab.Packet) error {
	o.out = zab.AppendPacket(o.out, p)
	return o.flushAbove(0)
}

// flushAbove sends the collected packets if they have more than size bytes.
func (o *observer) flushAbove(size int) error {
	if len(o.out) <= size {
		return nil
	}
	err := o.write(o.out)
	o.out = o.out[:0]
	if cap(o.out) > 4*flushSize { // a long transaction
		o.out = nil
	}
	return err
}

// write writes b. The observer must read it in time.
func (o *observer) write(b []byte) error {
	err := o.raw.SetWriteDeadline(time.Now().Add(o.m.cfg.silence()))
	if err == nil {
		_, err = o.conn.Write(b)
	}
	return err
}

// writer writes to the observer's connection.
type writer struct{ o *observer }

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) { return len(b), w.o.write(b) }
