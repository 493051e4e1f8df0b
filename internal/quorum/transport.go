package quorum

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TransportConfig configures a Transport.
type TransportConfig struct {
	Hub    *Hub
	ID     raft.ServerID
	Addr   string       // address of this server's quorum port, as the other servers dial it
	Logger hclog.Logger // for Raft's network layer; nil: silent

	// Stall is how long a request may make no progress. HeartbeatStall is the same for
	// requests that are answered immediately: heartbeats and vote requests. A connection
	// that exceeds the limit is replaced. Default 1.5 s and 500 ms.
	Stall, HeartbeatStall time.Duration

	// Applied returns the newest index passed to the state machine. A snapshot that
	// doesn't go beyond it is not installed. Nil: every snapshot is installed.
	Applied func() uint64
	// FirstIndex returns the index of the oldest entry in the log, 0 if it is empty. Nil:
	// the log still has its very first entry.
	FirstIndex func() uint64
	// Installing is called before Raft is given a snapshot, Installed after it has
	// installed one. Nil: not called.
	Installing, Installed func()
	// Acknowledged is called when a follower has stored entries, with the time since they
	// were sent. Joined is called when a follower stores its first entries in a
	// leadership. SendingSnapshot is called when a snapshot is sent, and the function
	// that it returns after that. Nil: not called.
	Acknowledged    func(id raft.ServerID, took time.Duration)
	Joined          func()
	SendingSnapshot func() (done func())
	// OpenSnapshot opens the newest snapshot of this server, to send it after a snapshot
	// didn't get through. Nil: Raft learns about every failure.
	OpenSnapshot func() (*raft.SnapshotMeta, io.ReadCloser, error)
	// Elsewhere returns more addresses at which a server may be found if the one in
	// Raft's configuration doesn't lead to it. The handshake verifies that it is that
	// server. Nil: none.
	Elsewhere func(id raft.ServerID) []string
	// Hanging returns how long the oldest write to this server's log has been running, 0
	// if none is. Nil: unknown.
	Hanging func() time.Duration
	// Standing returns the state that messages are checked against before Raft sees them.
	// It must not wait. Nil: only the message itself is checked.
	Standing func() Standing
	// TermOf returns the term of an entry in the log, false if the log doesn't have it.
	// Nil: Raft alone handles entries that replace committed ones.
	TermOf func(index uint64) (term uint64, ok bool)
	// CheckEntry returns an error if an entry can't be stored or applied. Nil: all can.
	CheckEntry func(l *raft.Log) error
	// CheckSnapshot reads a snapshot sent to this server and returns an error if it can't
	// be restored. It may stop reading early. Nil: all can.
	CheckSnapshot func(q *raft.InstallSnapshotRequest, r io.Reader) error
	// MaxEntry bounds the data of an entry in bytes; default 256 MiB.
	MaxEntry int
	// View returns what a server needs to find another leader after it has lost its own.
	// It must not wait for Close, Raft's main loop or the disk. Nil: this is left to the
	// heartbeat timeout.
	View func() View
}

// View is a server's view of its ensemble at one moment.
type View struct {
	Leader    raft.ServerID // empty: no leader is known
	Candidate bool          // it stands for election, or has won it at this moment
	Term      uint64        // Raft's current term: it grows with every vote that this server grants
	LastIndex uint64        // index of its last entry
	LastTerm  uint64        // term of its last entry
	Config    raft.Configuration
}

// maxPool is the number of pooled connections to a server: for replication, heartbeats
// and pushes.
const maxPool = 3

// ErrMuted is returned for the heartbeats of a leader with a hanging disk.
var ErrMuted = errors.New("quorum: no heartbeats while the log's disk hangs")

// Transport is the raft.Transport of one Raft instance. Around Raft's own network layer
// it
//   - records when a quorum last accepted this server as the leader,
//   - sends entries to followers while this server stores them,
//   - sends new commit indexes to followers immediately,
//   - withholds snapshots from Raft that would set this server back,
//   - lets a leader start anywhere in what this server has applied,
//   - replaces connections that make no progress, and repeats lost requests,
//   - stops the heartbeats of a leader whose disk hangs or that can't replicate,
//     so that another server can lead,
//   - starts an election as soon as the leader is known to be gone, if this server
//     should succeed it.
//
// Everything that Raft sends and persists names a server by its ServerID: addresses
// change, and another server may take one over.
type Transport struct {
	id        raft.ServerID
	addr      raft.ServerAddress
	cfg       TransportConfig
	net       *raft.NetworkTransport // for entries, pushes and snapshots that this server sends
	beats     *raft.NetworkTransport // for heartbeats and votes
	streams   *streams
	inbound   chan incoming // checked RPCs from other servers
	room      room          // memory for messages that other servers are sending
	heartbeat atomic.Pointer[func(raft.RPC)]
	consumer  chan raft.RPC
	stands    chan stand // asks the relay to let this server stand
	contacts  contacts
	leaders   leaders // the leaders that this server has heard from
	pusher    pusher
	watch     leaderWatch
	replays   *replays
	muting    muting
	paths     paths
	unheard   atomic.Uint64
	quorumAt  atomic.Int64 // when a quorum that follows no leader last answered a canvass, in Unix nanoseconds

	done chan struct{}
	once sync.Once
	wg   sync.WaitGroup

	abstention abstention
	gagging    muting // mutes a leader that can't replicate

	sending sync.WaitGroup // counts messages that Raft hasn't asked for
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
		consumer: make(chan raft.RPC), inbound: make(chan incoming), stands: make(chan stand), done: make(chan struct{})}
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
		Timeout:         handshakeTimeout + connectTimeout, // limits connecting; outConn bounds the rest
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

// Close closes every connection of this Raft instance. The hub stays open.
func (t *Transport) Close() error {
	t.once.Do(func() {
		t.pusher.mu.Lock() // start no push after Wait
		close(t.done)
		t.pusher.mu.Unlock()
		t.watch.stop()
		_ = t.net.Close()
		_ = t.beats.Close()
		_ = t.streams.Close()
		t.wg.Wait()
		t.sending.Wait()
	})
	return nil
}

// Consumer returns the channel of RPCs from other servers.
func (t *Transport) Consumer() <-chan raft.RPC { return t.consumer }

// LocalAddr returns the address of this server's quorum port.
func (t *Transport) LocalAddr() raft.ServerAddress { return t.addr }

// EncodePeer makes Raft write ServerIDs wherever it names servers.
func (t *Transport) EncodePeer(id raft.ServerID, _ raft.ServerAddress) []byte { return []byte(id) }

// DecodePeer is the inverse: it returns a ServerID in place of an address.
func (t *Transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler lets heartbeats overtake RPCs that wait for the disk.
func (t *Transport) SetHeartbeatHandler(cb func(rpc raft.RPC)) {
	beat := t.heartbeatFrom(cb)
	t.heartbeat.Store(&beat)
}

// AppendEntriesPipeline always returns an error.
func (t *Transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries sends entries or a heartbeat, or returns the answer to entries that were
// sent early.
func (t *Transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if args.PrevLogEntry == 0 && len(args.Entries) == 0 {
		if t.cannotReplicate(args.Term, time.Now()) {
			return ErrMuted
		}
		err := t.send(t.beats, id, addr, args, resp) // a heartbeat
		t.paths.beat(args.Term, id, err)
		return err
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

// errDeposed is returned for a request of a leader that has been replaced. Raft's
// goroutine for a follower may read the log again after this server has started to follow
// the next leader, and then finds that leader's entries. The other servers refuse a
// message with entries of a later term than its own.
var errDeposed = errors.New("quorum: this server does not lead any more")

func deposed(term, prevTerm uint64, entries []*raft.Log) bool {
	return prevTerm > term || len(entries) > 0 && entries[len(entries)-1].Term > term
}

// shorten drops the last entries of a request that is larger than its receiver may
// accept, but never the first one. Raft continues after the last remaining entry: it
// looks at the request again when it gets the answer.
func shorten(args *raft.AppendEntriesRequest) {
	if n := fitting(args.Entries); n < len(args.Entries) {
		args.Entries = args.Entries[:n]
		args.LeaderCommitIndex = min(args.LeaderCommitIndex, args.Entries[n-1].Index)
	}
}

// fitting returns how many of the entries fit into one message: as many as the receiver
// accepts in addition to an entry of the maximum size (besideEntry), and at least one.
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

// Committed tells the followers that all entries up to index are committed. Only the
// leader may call it, with an index of the log that it leads.
func (t *Transport) Committed(index uint64) { t.pusher.committed(index) }

// Deposed ends this server's duties as a leader.
func (t *Transport) Deposed() { t.pusher.stop() }

// again repeats a vote request on every pooled connection. They may all be left over from
// a process that has been replaced, which shows only when they are used, and Raft asks
// only once per election. Asking twice is harmless: the answer is the same.
func (t *Transport) again(request func() error) error {
	var err error
	for range maxPool + 1 {
		err = request()
		if err == nil || Refused(err) || IsTimeout(err) || t.closed() {
			break
		}
	}
	return err
}

// TimeoutNow makes another server start an election.
func (t *Transport) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	err := t.beats.TimeoutNow(id, target(id, addr), args, resp)
	if err != nil {
		t.unheard.Add(1)
	}
	return err
}

// Unheard returns the number of TimeoutNow requests that failed.
func (t *Transport) Unheard() uint64 { return t.unheard.Load() }
