package zoocfg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Role is a server's role in the ensemble.
type Role int

const (
	// Participant votes. It is ZooKeeper's LearnerType 0.
	Participant Role = iota
	// Observer follows without a vote. It is ZooKeeper's LearnerType 1.
	Observer
)

// String returns ZooKeeper's name of the role.
func (r Role) String() string {
	if r == Observer {
		return "observer"
	}
	return "participant"
}

// Addr is one of the addresses that a server's peers use.
type Addr struct {
	Host         string
	QuorumPort   int
	ElectionPort int
}

// Server is one server.N line.
type Server struct {
	ID    uint64
	Addrs []Addr // at least one
	Role  Role
	// ClientHost is "" if the line has no client part. It's 0.0.0.0 if the client
	// part has no host.
	ClientHost string
	ClientPort int
}

// The errors in a server line, as ZooKeeper distinguishes them.
var (
	ErrWrongFormat  = errors.New("wrong format")
	ErrUnresolved   = errors.New("Address unresolved")
	ErrPortRange    = errors.New("port out of range")
	ErrSamePorts    = errors.New("Client and election port must be different")
	ErrPeerType     = errors.New("Unrecognised peertype")
	ErrMixedRoles   = errors.New("Multiple addresses should have similar roles")
	ErrMultiAddress = errors.New("Multiple address feature is disabled")
	ErrConflict     = errors.New("address in use by another server")
)

const serverForm = " does not have the form server_config or server_config;client_config" +
	" where server_config is the pipe separated list of host:port:port or host:port:port:type" +
	" and client_config is port or host:port"

// ParseServerLine parses the value of a server.N line,
//
//	host:quorumPort:electionPort[:role][|host:…]…[;[clientHost:]clientPort]
//
// in every form that ZooKeeper accepts, with ZooKeeper's errors. It accepts several
// addresses; Config.MultiAddressEnabled and CheckAddresses decide whether they are
// allowed.
func ParseServerLine(id uint64, spec string) (Server, error) {
	s := Server{ID: id}
	parts := split(spec, ";")
	if len(parts) == 0 || len(parts) > 2 {
		return Server{}, wrongForm(spec)
	}
	if len(parts) == 2 {
		if err := s.parseClient(spec, parts[1]); err != nil {
			return Server{}, err
		}
	}
	roles := map[Role]bool{}
	for _, text := range split(parts[0], "|") {
		if err := s.parseAddr(spec, text, roles); err != nil {
			return Server{}, err
		}
	}
	if len(s.Addrs) == 0 {
		return Server{}, wrongForm(spec)
	}
	if roles[Observer] {
		s.Role = Observer
	}
	return s, nil
}

func wrongForm(spec string) error {
	return fmt.Errorf("%w: %s%s", ErrWrongFormat, spec, serverForm)
}

func (s *Server) parseClient(spec, text string) error {
	parts, err := hostAndPort(text)
	if err != nil {
		return err
	}
	if len(parts) == 0 || len(parts) > 2 {
		return wrongForm(spec)
	}
	s.ClientHost = "0.0.0.0"
	if len(parts) == 2 {
		s.ClientHost = hostString(parts[0])
	}
	s.ClientPort, err = port(s.ClientHost, parts[len(parts)-1])
	return err
}

// parseAddr parses one of the addresses and records its role, if it has one.
func (s *Server) parseAddr(spec, text string, roles map[Role]bool) error {
	parts, err := hostAndPort(text)
	if err != nil {
		return err
	}
	if len(parts) < 3 || len(parts) > 4 {
		return wrongForm(spec)
	}
	a := Addr{Host: hostString(parts[0])}
	if a.QuorumPort, err = port(parts[0], parts[1]); err != nil {
		return err
	}
	if a.ElectionPort, err = port(parts[0], parts[2]); err != nil {
		return err
	}
	if a.QuorumPort == a.ElectionPort {
		return fmt.Errorf("%w! Please update the configuration file on server.%d", ErrSamePorts, s.ID)
	}
	if len(parts) == 4 {
		role, err := parseRole(trim(parts[3]))
		if err != nil {
			return err
		}
		roles[role] = true
		if len(roles) > 1 {
			return fmt.Errorf("%w: participant vs observer", ErrMixedRoles)
		}
	}
	if !slices.Contains(s.Addrs, a) {
		s.Addrs = append(s.Addrs, a)
	}
	return nil
}

func parseRole(s string) (Role, error) {
	switch strings.ToLower(s) {
	case "participant":
		return Participant, nil
	case "observer":
		return Observer, nil
	}
	return 0, fmt.Errorf("%w: %s: expected participant or observer", ErrPeerType, s)
}

func port(host, text string) (int, error) {
	n, ok := parseInt(text)
	if !ok {
		return 0, fmt.Errorf("%w: %s:%s: expected a port number without blanks, got %q", ErrUnresolved, host, text, text)
	}
	if n < 0 || n > 65535 {
		return 0, fmt.Errorf("%w:%d: expected 0 to 65535", ErrPortRange, n)
	}
	return n, nil
}

// CheckAddresses returns an error for a server with several addresses unless
// multiAddress is set.
func (s Server) CheckAddresses(multiAddress bool) error {
	if len(s.Addrs) > 1 && !multiAddress {
		return fmt.Errorf("%w, but multiple addresses were specified for sid %d: set multiAddress.enabled=true",
			ErrMultiAddress, s.ID)
	}
	return nil
}

// String returns the server's value in the config node, after server.N=.
// ParseServerLine parses it. Several addresses are sorted by host.
func (s Server) String() string {
	addrs := slices.Clone(s.Addrs)
	slices.SortStableFunc(addrs, func(a, b Addr) int { return strings.Compare(a.Host, b.Host) })
	var b strings.Builder
	for i, a := range addrs {
		if i > 0 {
			b.WriteByte('|')
		}
		fmt.Fprintf(&b, "%s:%d:%d", bracketed(a.Host), a.QuorumPort, a.ElectionPort)
	}
	b.WriteString(":" + s.Role.String())
	if s.ClientHost != "" {
		fmt.Fprintf(&b, ";%s:%d", bracketed(s.ClientHost), s.ClientPort)
	}
	return b.String()
}

// Line returns the server's whole line in the config node: server.N=….
func (s Server) Line() string {
	return fmt.Sprintf("server.%d=%s", s.ID, s)
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// CheckConflict is the check that reconfig makes between a joining server and each of
// the other servers: they must not share an endpoint, including the client endpoint.
// Wildcard and loopback addresses never conflict.
func (s Server) CheckConflict(other Server) error {
	theirs := other.endpoints()
	for _, mine := range s.endpoints() {
		if slices.Contains(theirs, mine) {
			return fmt.Errorf("%w: %s of server.%d conflicts %s of server.%d", ErrConflict, mine, s.ID, mine, other.ID)
		}
	}
	return nil
}

// endpoints returns the host:port pairs that no two servers may share.
func (s Server) endpoints() []string {
	var all []string
	add := func(host string, port int) {
		host = strings.ToLower(host)
		if host != "" && !anyAddress(host) && !loopback(host) {
			all = append(all, fmt.Sprintf("%s:%d", bracketed(host), port))
		}
	}
	for _, a := range s.Addrs {
		add(a.Host, a.QuorumPort)
		add(a.Host, a.ElectionPort)
	}
	add(s.ClientHost, s.ClientPort)
	return all
}
