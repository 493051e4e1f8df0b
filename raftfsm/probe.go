package raftfsm

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

const (
	// maxProbe bounds the size of a question and of its answer.
	maxProbe = 1 << 20
	// probeTimeout is for questions that are answered immediately. Empty messages, three
	// per probeTimeout, precede the answer to any other question.
	probeTimeout = 2 * time.Second
)

// phase is how far a server has got on its way into an ensemble.
type phase string

const (
	phaseEmpty  phase = "empty"  // nothing on disk
	phaseBound  phase = "bound"  // has accepted a formation plan
	phaseMember phase = "member" // has Raft state, which may not run yet
)

// probe is what a server tells another about itself, in questions and answers. The
// handshake already carries ensemble, list and ServerID.
type probe struct {
	ID       uint64 `json:"id"`
	Disk     uint64 `json:"disk"`
	Addr     string `json:"addr"` // of its quorum port, from its own configuration
	Observer bool   `json:"observer,omitempty"`
	List     string `json:"list"` // of its configuration file, in the form of /zookeeper/config
	// ClientPort is what its own line in the list lacks; 0 if it lacks nothing.
	ClientPort int    `json:"clientPort,omitempty"`
	Level      uint32 `json:"level"` // newest behaviour level that it knows
	Phase      phase  `json:"phase"`
	// The plan that it accepted last, the ballot of that plan, and the ballot that it
	// has promised to follow.
	Bound    *founding `json:"bound,omitempty"`
	Ballot   ballot    `json:"ballot,omitzero"`
	Promised ballot    `json:"promised,omitzero"`

	// Join asks for admission, because Raft's configuration lacks this server with its
	// current ServerID.
	Join bool          `json:"join,omitempty"`
	As   raft.ServerID `json:"as"` // the ServerID that it has or would join with

	// In answers: where the leader is, as far as this server knows.
	Leading    bool   `json:"leading,omitempty"`
	Leader     uint64 `json:"leader,omitempty"` // meaningless without LeaderAddr
	LeaderAddr string `json:"leaderAddr,omitempty"`
	// Refusal answers a server that asked to join.
	Refusal string `json:"refusal,omitempty"`

	// Token is in questions only: a random number of the server that asks. An admission
	// repeats it, which proves that its sender was asked.
	Token uint64 `json:"token,omitempty"`
}

const (
	// maxServerID bounds a ServerID in a probe. The handshake has room for as many bytes.
	maxServerID = 31
	// maxPhase bounds the name of a phase, which may be one of a later release.
	maxPhase = 16
	// maxRefusal bounds the text of a refusal, which names a server with all its
	// addresses.
	maxRefusal = 16 << 10
)

// check returns an error for a probe that no server of an ensemble sends. Its sender has
// proved nothing yet, so anything that this server remembers of a probe is small.
func (p *probe) check() error {
	switch {
	case p.ID > membership.MaxServer:
		return fmt.Errorf("server id %d: must be 0 to %d", p.ID, membership.MaxServer)
	case len(p.As) > maxServerID || strings.Trim(string(p.As), "0123456789.") != "":
		return fmt.Errorf("a ServerID of %d bytes: digits and dots, at most %d", len(p.As), maxServerID)
	case len(p.Phase) > maxPhase:
		return fmt.Errorf("a phase of %d bytes: at most %d", len(p.Phase), maxPhase)
	case len(p.List) > membership.MaxListBytes:
		return fmt.Errorf("a list of %d bytes: at most %d", len(p.List), membership.MaxListBytes)
	case len(p.LeaderAddr) > membership.MaxHost+len("[]:65535"):
		return fmt.Errorf("an address of %d bytes", len(p.LeaderAddr))
	case len(p.Refusal) > maxRefusal:
		return fmt.Errorf("a refusal of %d bytes: at most %d", len(p.Refusal), maxRefusal)
	}
	if p.Addr != "" && !isAddress(p.Addr) {
		return errors.New("its address is not a host and a port")
	}
	if p.Bound == nil {
		return nil
	}
	if len(p.Bound.Servers) > membership.MaxServers || len(p.Bound.Disks) > membership.MaxServers {
		return fmt.Errorf("a founding of more than %d servers", membership.MaxServers)
	}
	for _, s := range p.Bound.Servers {
		if s.Addr != placeholder(s.ID) && !isAddress(s.Addr) {
			return errors.New("a founding with an address that is not a host and a port")
		}
	}
	return nil
}

// isAddress reports whether addr has a port, and a host that a list may have. The host
// may be missing: that is a wildcard.
func isAddress(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && len(host) <= membership.MaxHost && membership.IsPort(port)
}

// admission lets a server start its Raft, because the leader is about to contact it.
// The leader calls the server at its address in the membership, so no other server
// learns the id of the ensemble.
type admission struct {
	Cluster  quorum.ClusterID `json:"cluster"`
	ServerID raft.ServerID    `json:"serverID"`
	Token    uint64           `json:"token"`
}

// question is the message on a stream of kind Probe or Change, with one field set. A
// reconfig is a question on Change only, and both servers must be members.
type question struct {
	Probe    *probe        `json:"probe,omitempty"`
	Admit    *admission    `json:"admit,omitempty"`
	Reconfig *driveRequest `json:"reconfig,omitempty"`
}

// answer is the reply to a question.
type answer struct {
	Probe    *probe       `json:"probe,omitempty"`
	Admitted bool         `json:"admitted,omitempty"`
	Reconfig *driveAnswer `json:"reconfig,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// ask sends a question to the server at addr.
func ask(ctx context.Context, hub *quorum.Hub, addr, to string, q *question) (*answer, quorum.Identity, error) {
	kind := quorum.Probe
	if q.Reconfig != nil {
		kind = quorum.Change
	}
	conn, theirs, err := hub.Dial(ctx, kind, addr, to)
	if err != nil {
		return nil, theirs, err
	}
	if q.Admit != nil && theirs.Ensemble != (quorum.EnsembleName{}) {
		_ = conn.Close()
		return nil, theirs, fmt.Errorf("server %s at %s belongs to an ensemble already", theirs.ServerID, addr)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	if err := writeMessage(conn, q); err != nil {
		return nil, theirs, err
	}
	var a answer
	if err := awaitAnswer(conn, &a); err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) && (quorum.IsTimeout(err) || ctx.Err() != nil) {
			quorum.BlamePath(conn)
		}
		return nil, theirs, fmt.Errorf("answer of server %s at %s: %w", theirs.ServerID, addr, err)
	}
	if a.Error != "" {
		return nil, theirs, fmt.Errorf("server %s at %s: %s", theirs.ServerID, addr, a.Error)
	}
	if a.Probe != nil {
		if err := a.Probe.check(); err != nil {
			return nil, theirs, fmt.Errorf("answer of server %s at %s: %w", theirs.ServerID, addr, err)
		}
	}
	return &a, theirs, nil
}

// respond reads one question from conn and answers it.
func respond(conn net.Conn, from quorum.Identity, f func(*question, quorum.Identity) *answer) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(probeTimeout))
	var q question
	if err := readMessage(conn, &q); err != nil {
		return
	}
	stop := func() {}
	if q.Reconfig != nil && from.Beats {
		stop = sayWorking(conn)
	}
	a := f(&q, from)
	stop()
	_ = conn.SetWriteDeadline(time.Now().Add(probeTimeout))
	_ = writeMessage(conn, a)
}

// sayWorking sends empty messages until the caller calls stop.
func sayWorking(conn net.Conn) (stop func()) {
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		tick := time.NewTicker(probeTimeout / 3)
		defer tick.Stop()
		for {
			_ = conn.SetWriteDeadline(time.Now().Add(probeTimeout))
			if _, err := conn.Write(make([]byte, 4)); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-left
	}
}

// awaitAnswer reads the answer and the empty messages before it. The first empty
// message announces that the peer sends more in time; servers of earlier releases send
// none.
func awaitAnswer(conn net.Conn, a *answer) error {
	for {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return err
		}
		if n := binary.BigEndian.Uint32(size[:]); n > 0 {
			return readSized(conn, n, a)
		}
		_ = conn.SetReadDeadline(time.Now().Add(probeTimeout))
	}
}

func writeMessage(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data)))
	_, err = w.Write(append(b, data...))
	return err
}

func readMessage(r io.Reader, v any) error {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	return readSized(r, binary.BigEndian.Uint32(size[:]), v)
}

func readSized(r io.Reader, n uint32, v any) error {
	if n > maxProbe {
		return fmt.Errorf("message of %d bytes", n)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("message between servers: %w", err)
	}
	return nil
}

// listHash is the fingerprint of a list of servers: their ids, roles and quorum ports.
// It omits host names, since a server may have several, e.g. a wildcard for itself. The
// handshake checks by id which server answers.
func listHash(members []membership.Member) quorum.Hash {
	var b []byte
	for _, f := range founders(members) {
		_, port, _ := net.SplitHostPort(f.Addr)
		b = fmt.Appendf(b, "%d %s %t\n", f.ID, port, f.Observer)
	}
	return quorum.HashOf(b)
}

// refused returns the refusal of a peer, or nil if err is another error.
func refused(err error) *quorum.RefusedError {
	var r *quorum.RefusedError
	if errors.As(err, &r) {
		return r
	}
	return nil
}
