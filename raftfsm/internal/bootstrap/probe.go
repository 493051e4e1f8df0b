package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// Phase is a server's progress towards membership in an ensemble.
type Phase string

// The phases.
const (
	PhaseEmpty  Phase = "empty"  // nothing on disk
	PhaseBound  Phase = "bound"  // has accepted a formation plan
	PhaseMember Phase = "member" // has Raft state, which may not run yet
)

// Probe describes a server to another server, in questions and answers. The handshake
// already carries ensemble, list and ServerID.
type Probe struct {
	ID       uint64 `json:"id"`
	Disk     uint64 `json:"disk"`
	Addr     string `json:"addr"` // of its quorum port, from its own configuration
	Observer bool   `json:"observer,omitempty"`
	List     string `json:"list"` // of its configuration file, in the form of /zookeeper/config
	// ClientPort is the port that its own line in the list lacks; 0 if the line has it.
	ClientPort int    `json:"clientPort,omitempty"`
	Level      uint32 `json:"level"` // newest behaviour level that it knows
	Phase      Phase  `json:"phase"`
	// The plan that it accepted last, the ballot of that plan, and the ballot that it
	// has promised to follow.
	Bound    *Plan  `json:"bound,omitempty"`
	Ballot   Ballot `json:"ballot,omitzero"`
	Promised Ballot `json:"promised,omitzero"`

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

// Check returns an error for a probe that no server of an ensemble sends. Its sender has
// proved nothing yet, so this server must not store much data from a probe.
func (p *Probe) Check() error {
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
		return fmt.Errorf("a formation plan of more than %d servers", membership.MaxServers)
	}
	for _, s := range p.Bound.Servers {
		if s.Addr != membership.Placeholder(s.ID) && !isAddress(s.Addr) {
			return errors.New("a formation plan with an address that is not a host and a port")
		}
	}
	return nil
}

// Line returns the server's own line in its list, or nil if there is none.
func (p *Probe) Line() *membership.Member {
	list, err := membership.Parse([]byte(p.List))
	if err != nil {
		return nil
	}
	return list.Member(p.ID)
}

// Says describes in words the state of the server that sent p.
func (p *Probe) Says() string {
	switch {
	case p.Refusal != "":
		return "it refuses this server: " + p.Refusal
	case p.Leading:
		return "it leads"
	case p.LeaderAddr != "":
		return fmt.Sprintf("it follows server %d", p.Leader)
	case p.Phase == PhaseMember:
		return "it looks for a leader, too"
	case p.Phase == PhaseBound:
		return "it participates in forming the ensemble"
	}
	return "its data directory is empty"
}

// isAddress reports whether addr has a port, and a host that a list may have. The host
// may be missing: that is a wildcard.
func isAddress(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && len(host) <= membership.MaxHost && membership.IsPort(port)
}

// Admission lets a server start its Raft, because the leader is about to contact it.
// The leader calls the server at its address in the membership, so no other server
// learns the id of the ensemble.
type Admission struct {
	Cluster  quorum.ClusterID `json:"cluster"`
	ServerID raft.ServerID    `json:"serverID"`
	Token    uint64           `json:"token"`
}

// Question is the message on a stream of kind quorum.Probe. Exactly one field is set.
type Question struct {
	Probe *Probe     `json:"probe,omitempty"`
	Admit *Admission `json:"admit,omitempty"`
}

// Answer is the reply to a Question.
type Answer struct {
	Probe    *Probe `json:"probe,omitempty"`
	Admitted bool   `json:"admitted,omitempty"`
	Error    string `json:"error,omitempty"`
}

// ask sends a question to the server at addr.
func ask(ctx context.Context, hub *quorum.Hub, addr, to string, q *Question) (*Answer, quorum.Identity, error) {
	conn, theirs, err := hub.Dial(ctx, quorum.Probe, addr, to)
	if err != nil {
		return nil, theirs, err
	}
	if q.Admit != nil && theirs.Ensemble != (quorum.EnsembleName{}) {
		_ = conn.Close()
		return nil, theirs, fmt.Errorf("server %s at %s already belongs to an ensemble", theirs.ServerID, addr)
	}
	var a Answer
	err = exchange.Ask(ctx, conn, q, &a)
	switch {
	case err != nil:
	case a.Error != "":
		err = errors.New(a.Error)
	case a.Probe != nil:
		err = a.Probe.Check()
	}
	if err != nil {
		return nil, theirs, fmt.Errorf("answer of server %s at %s: %w", theirs.ServerID, addr, err)
	}
	return &a, theirs, nil
}

// Probe asks the server at addr. If to isn't empty, it must be the server's ServerID.
func (f *Formation) Probe(ctx context.Context, addr, to string) (*Probe, quorum.Identity, error) {
	a, theirs, err := ask(ctx, f.env.Hub, addr, to, &Question{Probe: f.Describe()})
	switch {
	case err != nil:
		return nil, theirs, err
	case a.Probe == nil:
		return nil, theirs, errors.New("it gives no answer")
	}
	return a.Probe, theirs, nil
}

// Offer admits the server at addr. It returns an error if the server doesn't accept the
// admission.
func (a *Admission) Offer(ctx context.Context, hub *quorum.Hub, addr string) error {
	got, _, err := ask(ctx, hub, addr, "", &Question{Admit: a})
	if err == nil && !got.Admitted {
		err = errors.New("it gives no answer")
	}
	return err
}

// ListHash is the fingerprint of a list of servers: their ids, roles and quorum ports.
// It omits host names, since a server may have several, e.g. a wildcard for itself. The
// handshake checks by id which server answers.
func ListHash(members []membership.Member) quorum.Hash {
	var b []byte
	for _, f := range serversOf(members) {
		_, port, _ := net.SplitHostPort(f.Addr)
		b = fmt.Appendf(b, "%d %s %t\n", f.ID, port, f.Observer)
	}
	return quorum.HashOf(b)
}
