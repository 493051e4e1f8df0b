package membership

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Member is one server of the ensemble.
type Member struct {
	ID            uint64   // as in server.N, 0 to MaxServer
	QuorumAddr    string   // host:port that the other servers dial
	Alternates    []string // more addresses of the quorum port (multiAddress)
	ElectionAddr  string   // host:port of zoo.cfg's election port; kept for the config node, not dialled
	Observer      bool
	ClientAddr    string // host:port for clients as the config node prints it; empty if there is none
	ConfigNodeTxt string // the line of /zookeeper/config for this member

	named bool // set by a client's reconfig; only another reconfig changes the line
}

// MaxServer is the highest server id; the lowest is 0. The id is one byte of every
// session id.
const MaxServer = 255

// Line returns the server's line of /zookeeper/config.
func (m *Member) Line() string {
	if m.ConfigNodeTxt != "" {
		return m.ConfigNodeTxt
	}
	_, election, _ := net.SplitHostPort(m.ElectionAddr)
	if election == "" {
		election = "0"
	}
	role := "participant"
	if m.Observer {
		role = "observer"
	}
	line := fmt.Sprintf("server.%d=%s:%s", m.ID, strings.Join(m.QuorumAddrs(), ":"+election+"|"), election+":"+role)
	if m.ClientAddr != "" {
		line += ";" + m.ClientAddr
	}
	return line
}

// WithClient returns m with another client address, "" for none.
func (m Member) WithClient(addr string) Member {
	if m.ClientAddr != addr {
		m.ConfigNodeTxt, _, _ = strings.Cut(m.Line(), ";")
		if m.ClientAddr = addr; addr != "" {
			m.ConfigNodeTxt += ";" + addr
		}
	}
	return m
}

// ByReconfig reports whether a client's reconfig has set this line of the membership.
func (m Member) ByReconfig() bool { return m.named }

// Located returns the line with the host of addr in place of a wildcard.
func (m Member) Located(addr string) Member {
	if Dialable(m.QuorumAddr) || !Dialable(addr) || len(m.Alternates) > 0 {
		return m
	}
	host, _, _ := net.SplitHostPort(addr)
	m.ConfigNodeTxt = "" // it has the old host
	for _, a := range []*string{&m.QuorumAddr, &m.ElectionAddr} {
		if _, port, err := net.SplitHostPort(*a); err == nil {
			*a = net.JoinHostPort(host, port)
		}
	}
	return m
}

// Dialable reports whether addr is a host and port that other servers can dial.
func Dialable(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && !Wildcard(host)
}

// Placeholder returns a text for a server with an unknown address in Raft's
// configuration.
func Placeholder(server uint64) string { return fmt.Sprint("server.", server) }

// FirstDialable returns the first address that can be dialled, or the placeholder.
func FirstDialable(server uint64, addrs ...string) string {
	if i := slices.IndexFunc(addrs, Dialable); i >= 0 {
		return addrs[i]
	}
	return Placeholder(server)
}

// Same reports whether two lines name the same server at the same addresses. A wildcard
// matches any host, because some files use it for the server that they belong to. The
// client parts aren't compared, because the client port may be in either part of a file.
func (m *Member) Same(o *Member) bool {
	return m.ID == o.ID && m.Observer == o.Observer &&
		SameAddr(m.QuorumAddr, o.QuorumAddr) && SameAddr(m.ElectionAddr, o.ElectionAddr)
}

// SameAddr reports whether two addresses have the same port, and hosts that match.
func SameAddr(a, b string) bool {
	x, p, _ := net.SplitHostPort(a)
	y, q, _ := net.SplitHostPort(b)
	return p == q && (strings.EqualFold(x, y) || Wildcard(x) || Wildcard(y))
}

// Wildcard reports whether a host is empty or the unspecified address, which no server
// can dial.
func Wildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// ReconfigLine returns the server's line with the client part that reconfig needs.
func (m *Member) ReconfigLine(clientPort int) string {
	line := m.Line()
	if m.ClientAddr == "" && clientPort > 0 {
		line += fmt.Sprintf(";%d", clientPort)
	}
	return line
}

// QuorumAddrs returns all addresses at which the other servers dial the server.
func (m *Member) QuorumAddrs() []string { return append([]string{m.QuorumAddr}, m.Alternates...) }

// use adds n to the users of each of the server's endpoints.
func (m *Member) use(users map[string]int, n int) {
	for _, e := range m.endpoints() {
		users[e] += n
	}
}

// endpoints returns the addresses that no other server may use. As in ZooKeeper,
// wildcards and loopback addresses never conflict.
func (m *Member) endpoints() []string {
	var out []string
	for _, addr := range append([]string{m.QuorumAddr, m.ElectionAddr, m.ClientAddr}, m.Alternates...) {
		host, _, _ := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); !Wildcard(host) && !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
			out = append(out, strings.ToLower(addr))
		}
	}
	return out
}

// parseServer parses server.N=host:quorumPort:electionPort[:role][;[host:]port], where
// | separates alternatives of the first part.
func parseServer(key, value string) (Member, error) {
	var m Member
	if n := len(key) + len(value); n > MaxLine {
		return m, fmt.Errorf("a server with a line of %d bytes: at most %d", n, MaxLine)
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(key), "server.")
	id, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		return m, fmt.Errorf("%q is not server.N with N from 0 to %d", key, MaxServer)
	}
	m.ID = id
	servers, client, hasClient := strings.Cut(strings.TrimSpace(value), ";")
	if n := strings.Count(servers, "|") + 1; n > MaxServerAddresses {
		return m, fmt.Errorf("server %d has %d addresses: at most %d", id, n, MaxServerAddresses)
	}
	var lines []string
	role := "" // of the addresses that state one: it may be the last only
	for i, alternative := range strings.Split(servers, "|") {
		a, err := parseAddress(alternative)
		if err != nil {
			return m, fmt.Errorf("server %d: %w", id, err)
		}
		if i == 0 {
			m.QuorumAddr, m.ElectionAddr = a.quorum, a.election
		} else {
			m.Alternates = append(m.Alternates, a.quorum)
		}
		if a.role != "" {
			if role != "" && a.role != role {
				return m, fmt.Errorf("server %d: its addresses disagree about its role", id)
			}
			role = a.role
		}
		lines = append(lines, a.text)
	}
	m.Observer = role == "observer"
	m.ConfigNodeTxt = fmt.Sprintf("server.%d=%s:participant", id, strings.Join(lines, "|"))
	if m.Observer {
		m.ConfigNodeTxt = fmt.Sprintf("server.%d=%s:observer", id, strings.Join(lines, "|"))
	}
	if hasClient {
		if m.ClientAddr, err = parseClient(client); err != nil {
			return m, fmt.Errorf("server %d: %w", id, err)
		}
		m.ConfigNodeTxt += ";" + m.ClientAddr
	}
	return m, nil
}

// serverAddress is one alternative of a server line.
type serverAddress struct {
	quorum, election string
	role             string // in lower case; "" if it isn't stated
	text             string // as in /zookeeper/config, without the role
}

func parseAddress(s string) (serverAddress, error) {
	var a serverAddress
	host, rest, err := cutHost(s)
	if err != nil {
		return a, err
	}
	parts := strings.Split(rest, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return a, fmt.Errorf("%q is not host:quorumPort:electionPort[:role]", s)
	}
	for _, p := range parts[:2] {
		if !IsPort(p) {
			return a, fmt.Errorf("%q: %q is not a port", s, p)
		}
	}
	if parts[0] == parts[1] {
		return a, fmt.Errorf("%q: quorum and election port are the same", s)
	}
	if len(parts) == 3 {
		a.role = strings.ToLower(parts[2])
		if a.role != "observer" && a.role != "participant" {
			return a, fmt.Errorf("%q: unknown role %q", s, parts[2])
		}
	}
	a.quorum = net.JoinHostPort(host, parts[0])
	a.election = net.JoinHostPort(host, parts[1])
	a.text = a.quorum + ":" + parts[1]
	return a, nil
}

// parseClient parses the part after the semicolon. Without a host, it returns the
// wildcard address.
func parseClient(s string) (string, error) {
	if IsPort(s) {
		return "0.0.0.0:" + s, nil
	}
	host, port, err := cutHost(s)
	if err != nil || !IsPort(port) {
		return "", fmt.Errorf("%q is not [host:]clientPort", s)
	}
	return net.JoinHostPort(host, port), nil
}

// cutHost splits host:rest, with an IPv6 host in brackets.
func cutHost(s string) (host, rest string, err error) {
	after, brackets := strings.CutPrefix(s, "[")
	end := ":"
	if brackets {
		end = "]:"
	}
	host, rest, ok := strings.Cut(after, end)
	switch {
	case brackets && (!ok || host == "" || strings.Contains(host, "[")):
		return "", "", fmt.Errorf("%q: bad brackets", s)
	case !ok || host == "":
		return "", "", fmt.Errorf("%q has no host and port", s)
	case len(host) > MaxHost:
		return "", "", fmt.Errorf("a host of %d bytes: at most %d", len(host), MaxHost)
	}
	return host, rest, nil
}

// IsPort reports whether s is the number of a port.
func IsPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil && len(s) <= len("65535")
}
