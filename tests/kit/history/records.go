package history

import (
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Event is a notification that reached a client.
type Event struct {
	Client  int             `json:"client"`
	Conn    int             `json:"conn"`
	Session int64           `json:"session"`
	Server  int             `json:"server"`
	Seq     int             `json:"seq"` // position among all frames received on the connection, from 1
	At      Time            `json:"at"`
	Type    proto.EventType `json:"type"`
	Path    string          `json:"path"`
	Zxid    int64           `json:"zxid"` // of the transaction; −1: a change that setWatches caught up with
}

// String returns a line for people.
func (e *Event) String() string {
	return fmt.Sprintf("%s client %d conn %d server %d session %#x event %d %s zxid %#x frame %d",
		Clock(e.At), e.Client, e.Conn, e.Server, e.Session, e.Type, e.Path, e.Zxid, e.Seq)
}

// Change is what happened to a session, as seen by its client.
type Change string

// These are the changes of a session.
const (
	// Created means that a handshake gave the client a new session.
	Created Change = "created"
	// Attached means that a handshake gave the client its session again.
	Attached Change = "attached"
	// Expired means that a server told the client that its session is over.
	Expired Change = "expired"
	// Lost means that the connection ended without such a message; the session
	// may be alive.
	Lost Change = "lost"
	// Abandoned means that the client left its session to expire, and will not
	// return to it.
	Abandoned Change = "abandoned"
)

// Session is a change of a session. A client that closes its session is recorded
// as an Op (proto.OpCloseSession).
type Session struct {
	Client   int    `json:"client"`
	Conn     int    `json:"conn"`
	Session  int64  `json:"session"`
	Server   int    `json:"server"`
	Change   Change `json:"change"`
	Call     Time   `json:"call,omitempty"` // when the handshake was sent
	At       Time   `json:"at"`             // when the client learned about the end
	Timeout  Time   `json:"timeout,omitempty"`
	LastZxid int64  `json:"lastZxid,omitempty"` // that the client sent with the handshake
	Why      string `json:"why,omitempty"`
}

// String returns a line for people.
func (s *Session) String() string {
	return fmt.Sprintf("%s client %d conn %d server %d session %#x %s %s (handshake sent %s, timeout %s, last zxid %#x)",
		Clock(s.At), s.Client, s.Conn, s.Server, s.Session, s.Change, s.Why, Clock(s.Call), Clock(s.Timeout), s.LastZxid)
}

// Hold is a period in which a client believed that it held a lock.
//
// The belief begins with the reply that shows the client's own znode to be the first in the
// queue. It ends as in ZooKeeper's own clients: when the client begins to release the lock,
// when it learns that its session has expired, when its connection ends, and when it has
// received nothing for two thirds of its session timeout, after which a client gives up its
// connection. A client that returns to its session believes again, in a new Hold, as soon
// as the handshake is answered.
type Hold struct {
	Client  int   `json:"client"`
	Session int64 `json:"session"`
	Server  int   `json:"server"`
	Conn    int   `json:"conn"`

	Lock  string `json:"lock"`  // the parent of the queue
	Node  string `json:"node"`  // the holder's own znode
	Czxid int64  `json:"czxid"` // of the node
	From  Time   `json:"from"`  // when the reply that said so arrived
	To    Time   `json:"to"`    // when the belief ended
	Why   string `json:"why"`
}

// String returns a line for people.
func (h *Hold) String() string {
	return fmt.Sprintf("%s..%s client %d conn %d server %d session %#x held %s by %s czxid %#x, ended by %s",
		Clock(h.From), Clock(h.To), h.Client, h.Conn, h.Server, h.Session, h.Lock, h.Node, h.Czxid, h.Why)
}

// State is the state of one server at one zxid: at the end of a run or, with only
// a digest, at any time.
type State struct {
	Server int    `json:"server"`
	At     Time   `json:"at"`
	Zxid   int64  `json:"zxid"`
	Digest string `json:"digest,omitempty"` // of everything; equal for equal states
	Final  bool   `json:"final,omitempty"`  // recorded after the clients had ended and the servers had caught up
	Nodes  []Node `json:"nodes,omitempty"`  // sorted by path; nil: not looked at
	// Live is the list of sessions in the table; nil: not examined.
	Live []int64 `json:"live"`
}

// Node is one znode of a State.
type Node struct {
	Path string `json:"path"`
	Data string `json:"data,omitempty"`
	Stat Stat   `json:"stat"`
}

// String returns a line for people.
func (s *State) String() string {
	return fmt.Sprintf("%s server %d at zxid %#x: digest %s, %d znodes, %d sessions", Clock(s.At), s.Server, s.Zxid, s.Digest, len(s.Nodes), len(s.Live))
}

// Note is any text that helps to understand a run, e.g. a fault and its time.
type Note struct {
	At   Time   `json:"at"`
	Text string `json:"text"`
}

// String returns a line for people.
func (n *Note) String() string { return fmt.Sprintf("%s -- %s", Clock(n.At), n.Text) }
