package quorum

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TransportConfig says what a Transport works with.
type TransportConfig struct {
	Hub    *Hub
	ID     raft.ServerID
	Addr   string       // of this server's quorum port as the others dial it
	Logger hclog.Logger // for Raft's network layer; nil: silent

	// Stall is how long a request may make no progress, and HeartbeatStall how long
	// one that is answered at once: a heartbeat, or a request for a vote. A
	// connection on which it does not is replaced. Default 1.5 s and 500 ms.
	Stall, HeartbeatStall time.Duration

	// Applied is the newest index handed to the state machine. A snapshot that
	// does not go beyond it is not installed. Nil: everything is installed.
	Applied func() uint64
	// FirstIndex is the index of the oldest entry in the log, 0 when it is empty.
	// Nil: it begins with the first there ever was.
	FirstIndex func() uint64
	// Installing is called before Raft is given a snapshot, Installed after it
	// has taken one over. Nil: nobody cares.
	Installing, Installed func()
	// Acknowledged is called when a follower has stored entries, with the time
	// since they were sent; Joined when one stores the first of a leadership;
	// SendingSnapshot when a snapshot is sent, and what it returns when that is
	// over. Nil: nobody counts.
	Acknowledged    func(id raft.ServerID, took time.Duration)
	Joined          func()
	SendingSnapshot func() (done func())
	// Elsewhere returns more addresses at which a server may be found when the
	// one in Raft's configuration does not lead to it. The handshake tells
	// whether it is that server. Nil: there are none.
	Elsewhere func(id raft.ServerID) []string
	// Hanging returns for how long the oldest write to this server's log has
	// been under way, 0 without one. Nil: nobody knows.
	Hanging func() time.Duration
	// Standing is what messages are compared with before Raft sees them. It must
	// not wait. Nil: only what can be told from a message itself is checked.
	Standing func() Standing
	// TermOf returns the term of an entry in the log, false when it is not there.
	// Nil: entries in the place of committed ones are left to Raft.
	TermOf func(index uint64) (term uint64, ok bool)
	// CheckEntry says why an entry could not be stored or applied. Nil: any can.
	CheckEntry func(l *raft.Log) error
	// CheckSnapshot reads a snapshot that is sent to this server and says why it
	// could not be restored. It may stop reading early. Nil: any can.
	CheckSnapshot func(q *raft.InstallSnapshotRequest, r io.Reader) error
	// MaxEntry bounds the data of an entry in bytes; default 256 MiB.
	MaxEntry int
	// View is what a server needs to find another leader when it has lost its
	// own. It must not wait for Close, for Raft's main loop or for the disk. Nil:
	// leave it to the heartbeat timeout.
	View func() View
}

// View is what a server knows of its ensemble at one moment.
type View struct {
	Leader    raft.ServerID // empty: none is known
	Candidate bool          // it stands for election, or has won it this very moment
	Term      uint64        // Raft's current one: it goes up with every vote that this server gives
	LastIndex uint64        // of its last entry,
	LastTerm  uint64        // and the term of that
	Config    raft.Configuration
}

// maxPool is the number of connections with a server that are kept: for
// replication, heartbeats and pushes.
const maxPool = 3

// ErrMuted is what a leader with a hanging disk gets for its heartbeats.
var ErrMuted = errors.New("quorum: no heartbeats while the log's disk hangs")

// Transport is the raft.Transport of one Raft instance. Around Raft's own
// network layer it
//   - records when a quorum last took this server for the leader,
//   - sends entries to followers while this server stores them,
//   - tells followers at once what was committed,
//   - keeps snapshots from Raft that would set this server back,
//   - lets a leader begin anywhere in what this server has applied,
//   - replaces connections that make no progress, and repeats what was lost,
//   - stops the heartbeats of a leader whose disk hangs or that cannot replicate,
//     so that another server gets to lead,
//   - starts an election as soon as the leader is known to be gone and this
//     server is the one to follow it.
//
// A server is called by its ServerID in everything Raft sends and persists:
// addresses change and may be taken over by another server.
type Transport struct {
	id        raft.ServerID
	addr      raft.ServerAddress
	cfg       TransportConfig
	net       *raft.NetworkTransport // for what this server sends: entries, pushes and snapshots
	beats     *raft.NetworkTransport // heartbeats and votes
	streams   *streams
	inbound   chan raft.RPC // what other servers sent, checked
	room      room          // for what they are sending
	heartbeat atomic.Pointer[func(raft.RPC)]
	consumer  chan raft.RPC
	stands    chan stand // asks the relay to let this server stand
	contacts  contacts
	leaders   leaders // as this server has heard of them
	pusher    pusher
	watch     leaderWatch
	replays   *replays
	muting    muting
	paths     paths
	unheard   atomic.Uint64
	quorumAt  atomic.Int64 // when a quorum last answered a canvass, in Unix nanoseconds

	done chan struct{}
	once sync.Once
	wg   sync.WaitGroup

	abstention abstention
	gagging    muting // of a leader that cannot replicate

	hands hands // for what is sent without Raft's asking
}

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// NewTransport takes over the hub's Raft streams until Close.
func NewTransport(cfg TransportConfig) *Transport {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Stall == 0 {
		cfg.Stall = defaultStall
	}
	if cfg.HeartbeatStall == 0 {
		cfg.HeartbeatStall = defaultHeartbeatStall
	}
	t := &Transport{id: cfg.ID, addr: raft.ServerAddress(cfg.Addr), cfg: cfg,
		consumer: make(chan raft.RPC), inbound: make(chan raft.RPC), stands: make(chan stand), done: make(chan struct{})}
	t.hands.done = t.done
	t.room.limit = int64(t.maxEntry()) + besideEntry
	t.replays = &cfg.Hub.replays
	t.pusher = pusher{t: t, peers: make(map[raft.ServerID]*pushPeer)}
	t.muting.limit, t.gagging.limit = stallLimit, 2*cfg.Stall
	t.streams = newStreams(cfg.Hub, cfg.Addr, cfg.Stall, cfg.Elsewhere, t.Suspect, t.serve)
	cfg.Hub.Handle(Canvass, t.answerCanvass)
	t.net = t.network(lane{t.streams, cfg.Stall})
	t.beats = t.network(lane{t.streams, cfg.HeartbeatStall})
	t.wg.Add(1)
	go t.relay()
	return t
}

// network returns Raft's network layer for one kind of request.
func (t *Transport) network(l lane) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  l,
		MaxPool: maxPool,
		// Pipelining never recovers from a follower's first error.
		MaxRPCsInFlight: 1,
		Timeout:         handshakeTimeout + connectTimeout, // to connect; outConn bounds the rest
		Logger:          t.cfg.Logger,
	})
}

func (t *Transport) closed() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Close ends every connection of this Raft instance. The hub stays open.
func (t *Transport) Close() error {
	t.once.Do(func() {
		t.pusher.mu.Lock() // no push starts behind Wait
		close(t.done)
		t.pusher.mu.Unlock()
		t.watch.stop()
		_ = t.net.Close()
		_ = t.beats.Close()
		_ = t.streams.Close()
		t.wg.Wait()
		t.hands.wg.Wait()
	})
	return nil
}

// Consumer is where Raft gets the RPCs of other servers.
func (t *Transport) Consumer() <-chan raft.RPC { return t.consumer }

// LocalAddr is the address of this server's quorum port.
func (t *Transport) LocalAddr() raft.ServerAddress { return t.addr }

// EncodePeer makes Raft write ServerIDs where it means servers.
func (t *Transport) EncodePeer(id raft.ServerID, _ raft.ServerAddress) []byte { return []byte(id) }

// DecodePeer is the other direction: a ServerID in the place of an address.
func (t *Transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler lets heartbeats overtake RPCs that wait for the disk.
func (t *Transport) SetHeartbeatHandler(cb func(rpc raft.RPC)) {
	beat := t.heartbeatFrom(cb)
	t.heartbeat.Store(&beat)
}

// AppendEntriesPipeline always says no.
func (t *Transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries sends entries or a heartbeat, or gives the answer to those that
// are sent already.
func (t *Transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if args.PrevLogEntry == 0 && len(args.Entries) == 0 {
		if t.cannotReplicate(args.Term, time.Now()) {
			return ErrMuted
		}
		return t.send(t.beats, id, addr, args, resp) // a heartbeat
	}
	if deposed(args.Term, args.PrevLogTerm, args.Entries) {
		return errDeposed
	}
	shorten(args)
	s := t.replicate(id, addr, args)
	if *resp = s.resp; s.err != nil || !resp.Success {
		return s.err
	}
	if len(s.args.Entries) > 0 && t.cfg.Acknowledged != nil {
		t.cfg.Acknowledged(id, s.took)
	}
	if joined := t.pusher.acked(id, addr, s.args); joined && t.cfg.Joined != nil {
		t.cfg.Joined()
	}
	return nil
}

// errDeposed is why a request is not sent: it is that of a leader that has been
// replaced. Raft's goroutine for a follower may read the log once more after this
// server has begun to follow the next leader, and finds that leader's entries. The
// others refuse a message with entries of a later term than its own.
var errDeposed = errors.New("quorum: this server does not lead any more")

func deposed(term, prevTerm uint64, entries []*raft.Log) bool {
	return prevTerm > term || len(entries) > 0 && entries[len(entries)-1].Term > term
}

// shorten leaves out the last entries of a request that is larger than its receiver
// may accept, but never the first one. Raft goes on after the last entry that is
// left: it looks at the request again when it is answered.
func shorten(args *raft.AppendEntriesRequest) {
	if n := fitting(args.Entries); n < len(args.Entries) {
		args.Entries = args.Entries[:n]
		args.LeaderCommitIndex = min(args.LeaderCommitIndex, args.Entries[n-1].Index)
	}
}

// fitting is how many of the entries one message may hold: as much as the receiver
// accepts beside an entry of the largest size (besideEntry), and at least one entry.
func fitting(entries []*raft.Log) int {
	size := 0
	for n, e := range entries {
		if size += len(e.Data) + len(e.Extensions); n > 0 && size > besideEntry/2 {
			return n
		}
	}
	return len(entries)
}

func (t *Transport) send(over *raft.NetworkTransport, id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if t.cfg.Hanging != nil && t.muting.silent(args.Term, t.cfg.Hanging(), time.Now()) {
		return ErrMuted
	}
	start := t.contacts.begin()
	if err := over.AppendEntries(id, target(id, addr), args, resp); err != nil {
		return err
	}
	if err := t.examineAnswer(id, resp.Term); err != nil {
		return err
	}
	if resp.Success && resp.Term == args.Term {
		t.contacts.record(args.Term, id, start)
		t.paths.heard()
	}
	return nil
}

// Committed tells the followers that everything up to index is committed.
// Only the leader may call it, with an index of the log it leads.
func (t *Transport) Committed(index uint64) { t.pusher.committed(index) }

// Deposed ends the duties of a leader.
func (t *Transport) Deposed() { t.pusher.stop() }

// again repeats a request for a vote over every connection that is kept. They
// may all be left over from a process that has been replaced since, which shows
// only when they are used, and Raft asks once in an election. Asking twice is
// harmless: the answer is the same.
func (t *Transport) again(request func() error) error {
	var err error
	for range maxPool + 1 {
		err = request()
		var slow net.Error
		if err == nil || Refused(err) || errors.As(err, &slow) && slow.Timeout() || t.closed() {
			break
		}
	}
	return err
}

// InstallSnapshot sends a snapshot.
func (t *Transport) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if t.cfg.SendingSnapshot != nil {
		defer t.cfg.SendingSnapshot()()
	}
	if deposed(args.Term, args.LastLogTerm, nil) {
		return errDeposed
	}
	t.awaitFollower(args.Term, id, addr)
	began := time.Now()
	err := t.net.InstallSnapshot(id, target(id, addr), args, resp, data)
	if err = errors.Join(err, t.examineAnswer(id, resp.Term)); err != nil {
		t.noteFailure(args.Term, id, began, err)
		return err
	}
	t.paths.works(args.Term, id)
	return nil
}

// TimeoutNow makes another server start an election.
func (t *Transport) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	err := t.beats.TimeoutNow(id, target(id, addr), args, resp)
	if err != nil {
		t.unheard.Add(1)
	}
	return err
}

// Unheard counts the TimeoutNow that did not get through.
func (t *Transport) Unheard() uint64 { return t.unheard.Load() }
