package membership

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"
)

// Bounds of a list.
const (
	// MaxServers bounds the servers of a list: one for each id.
	MaxServers = MaxServer + 1
	// MaxListBytes bounds a list of servers and a reconfig.
	MaxListBytes = 256 << 10
	// MaxServerAddresses bounds the alternative addresses of a server.
	MaxServerAddresses = 16
	// MaxHost bounds a host in a list of servers. A DNS name has up to 253 bytes.
	MaxHost = 255
	// MaxLine bounds a server's line. It has room for every valid address.
	MaxLine = 8 << 10
)

// List is the list of servers that /zookeeper/config shows. That text is
// replicated state, and Raft's configuration follows it: the leader adds, promotes and
// removes servers until the two agree.
type List struct {
	Members []Member // by id
	Version uint64   // zxid of the reconfig that set it; 0: the list from the configuration files
	Raw     []byte   // the state it was parsed from, otherwise nil
}

// Text returns the content of /zookeeper/config, byte for byte as ZooKeeper writes it:
// the servers by id, the version in hex, no newline at the end.
func (m *List) Text() []byte {
	var b []byte
	for i := range m.Members {
		b = append(append(b, m.Members[i].Line()...), '\n')
	}
	return fmt.Appendf(b, "version=%x", m.Version)
}

// NamedLevel is the behaviour level from which the state distinguishes the lines set by a
// reconfig from the lines of configuration files.
const NamedLevel = 3

// NamedKey starts the line of the state that lists the servers with lines set by a
// reconfig. /zookeeper/config does not show it.
const NamedKey = "\nnamed="

// State returns the encoding for the replicated state and its snapshots: the text, and
// which lines a reconfig has set.
func (m *List) State() []byte {
	var ids []string
	for i := range m.Members {
		if m.Members[i].named {
			ids = append(ids, strconv.FormatUint(m.Members[i].ID, 10))
		}
	}
	if len(ids) == 0 {
		return m.Text()
	}
	return append(append(m.Text(), NamedKey...), strings.Join(ids, ",")...)
}

// ConfigText returns the text of /zookeeper/config for a state.
func ConfigText(state []byte) []byte {
	text, _, _ := bytes.Cut(state, []byte(NamedKey))
	return text
}

// setNamed marks the lines that a reconfig has set.
func (m *List) setNamed(ids string) error {
	for _, id := range strings.Split(ids, ",") {
		n, err := strconv.ParseUint(id, 10, 64)
		s := m.Member(n)
		if err != nil || s == nil {
			return fmt.Errorf("the membership has no server %q", id)
		}
		s.named = true
	}
	return nil
}

// ForgetNamed treats all lines as lines of configuration files.
func (m *List) ForgetNamed() {
	for i := range m.Members {
		m.Members[i].named = false
	}
}

// Check returns an error for a list that can't be replicated. The log contains the
// membership as text, and every server must be able to parse it.
func Check(members []Member) error {
	text := New(members).Text()
	_, err := Parse(text)
	if err == nil && len(text) > MaxListBytes {
		err = fmt.Errorf("%d bytes: at most %d", len(text), MaxListBytes)
	}
	if err != nil {
		return fmt.Errorf("the list of servers in the configuration: %w", err)
	}
	return nil
}

// Member returns the server with that id, or nil when it is not on the list.
func (m *List) Member(id uint64) *Member {
	for i := range m.Members {
		if m.Members[i].ID == id {
			return &m.Members[i]
		}
	}
	return nil
}

// Lists reports whether the server with that id is on the list, if there is a list.
func (m *List) Lists(id uint64) bool { return m != nil && m.Member(id) != nil }

// Voters returns the number of participants.
func (m *List) Voters() int {
	n := 0
	for i := range m.Members {
		if !m.Members[i].Observer {
			n++
		}
	}
	return n
}

// New returns the list of a configuration file.
func New(members []Member) *List {
	m := &List{Members: slices.Clone(members)}
	m.sort()
	return m
}

func (m *List) sort() {
	slices.SortFunc(m.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
}

// SameServers reports whether two lists have the same servers in the same roles.
func (m *List) SameServers(o *List) bool {
	return slices.EqualFunc(m.Members, o.Members, func(a, b Member) bool { return a.ID == b.ID && a.Observer == b.Observer })
}

// ParseState parses the output of State.
func ParseState(state []byte) (*List, error) {
	text, ids, named := bytes.Cut(state, []byte(NamedKey))
	m, err := Parse(text)
	if err == nil && named {
		err = m.setNamed(string(ids))
	}
	if err != nil {
		return nil, err
	}
	m.Raw = state
	return m, nil
}

// Parse parses a text of /zookeeper/config.
func Parse(text []byte) (*List, error) {
	m, err := parseList(text)
	if err != nil {
		return nil, err
	}
	if id, over := m.TooLarge(); over {
		return nil, fmt.Errorf("server id %d: must be 0 to %d", id, MaxServer)
	}
	return m, nil
}

// TooLarge returns an id in m that is above MaxServer.
func (m *List) TooLarge() (id uint64, over bool) {
	for i := range m.Members {
		if m.Members[i].ID > MaxServer {
			return m.Members[i].ID, true
		}
	}
	return 0, false
}

// parseList parses input that may come from a client, so its ids may be too large. It
// stops at the first line too many.
func parseList(text []byte) (*List, error) {
	m := &List{}
	for line := range bytes.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		switch {
		case key == "" && !ok:
		case key == "version":
			v, err := strconv.ParseUint(value, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("membership version %q: %w", value, err)
			}
			m.Version = v
		default:
			if len(m.Members) == MaxServers {
				return nil, fmt.Errorf("a list of more than %d servers", MaxServers)
			}
			s, err := parseServer(key, value)
			if err != nil {
				return nil, err
			}
			if m.Member(s.ID) != nil {
				return nil, fmt.Errorf("server %d is listed twice", s.ID)
			}
			m.Members = append(m.Members, s)
		}
	}
	m.sort()
	return m, nil
}

// Observes reports whether a server in Raft's configuration is an observer, according
// to the membership m. If m lacks the server, its vote in Raft decides.
func (m *List) Observes(s raft.Server) bool {
	if m != nil {
		if x := m.Member(ServerOf(s.ID)); x != nil {
			return x.Observer
		}
	}
	return s.Suffrage != raft.Voter
}

// votes reports whether a server is a participant on the list.
func (m *List) votes(id uint64) bool {
	s := m.Member(id)
	return s != nil && !s.Observer
}
