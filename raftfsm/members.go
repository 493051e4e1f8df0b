package raftfsm

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

const (
	// maxServers bounds the servers of a list: one for each id.
	maxServers = MaxServer + 1
	// MaxListBytes bounds a list of servers and a reconfig.
	MaxListBytes = 256 << 10
	// MaxServerAddresses bounds the alternative addresses of a server.
	MaxServerAddresses = 16
	// MaxHost bounds a host in a list of servers. A DNS name has up to 253 bytes.
	MaxHost = 255
	// maxLine bounds a server's line. It has room for every valid address.
	maxLine = 8 << 10
)

// membership is the list of servers that /zookeeper/config shows. That text is
// replicated state, and Raft's configuration follows it: the leader adds, promotes and
// removes servers until the two agree.
type membership struct {
	members []Member // by id
	version uint64   // zxid of the reconfig that set it; 0: the list from the configuration files
	raw     []byte   // the state it was parsed from, otherwise nil
}

// text returns the content of /zookeeper/config, byte for byte as ZooKeeper writes it:
// the servers by id, the version in hex, no newline at the end.
func (m *membership) text() []byte {
	var b []byte
	for i := range m.members {
		b = append(append(b, m.members[i].line()...), '\n')
	}
	return fmt.Appendf(b, "version=%x", m.version)
}

// namedLevel is the behaviour level from which the state distinguishes the lines set by
// a reconfig from those of the configuration files.
const namedLevel = 3

// namedKey starts the line of the state that lists the servers whose lines a reconfig
// has set. /zookeeper/config does not show it.
const namedKey = "\nnamed="

// state returns what the replicated state and its snapshots hold: the text, and which
// lines a reconfig has set.
func (m *membership) state() []byte {
	var ids []string
	for i := range m.members {
		if m.members[i].named {
			ids = append(ids, strconv.FormatUint(m.members[i].ID, 10))
		}
	}
	if len(ids) == 0 {
		return m.text()
	}
	return append(append(m.text(), namedKey...), strings.Join(ids, ",")...)
}

// configText returns what /zookeeper/config shows of a state.
func configText(state []byte) []byte {
	text, _, _ := bytes.Cut(state, []byte(namedKey))
	return text
}

// setNamed marks the lines that a reconfig has set.
func (m *membership) setNamed(ids string) error {
	for _, id := range strings.Split(ids, ",") {
		n, err := strconv.ParseUint(id, 10, 64)
		s := m.member(n)
		if err != nil || s == nil {
			return fmt.Errorf("the membership has no server %q", id)
		}
		s.named = true
	}
	return nil
}

// forgetNamed treats all lines as those of the configuration files.
func (m *membership) forgetNamed() {
	for i := range m.members {
		m.members[i].named = false
	}
}

// line returns the server's line of /zookeeper/config.
func (m *Member) line() string {
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
	line := fmt.Sprintf("server.%d=%s:%s", m.ID, strings.Join(m.quorumAddrs(), ":"+election+"|"), election+":"+role)
	if m.ClientAddr != "" {
		line += ";" + m.ClientAddr
	}
	return line
}

// withClient returns m with another client address, "" for none.
func (m Member) withClient(addr string) Member {
	if m.ClientAddr != addr {
		m.ConfigNodeTxt, _, _ = strings.Cut(m.line(), ";")
		if m.ClientAddr = addr; addr != "" {
			m.ConfigNodeTxt += ";" + addr
		}
	}
	return m
}

// checkMembers returns an error for a list that can't be replicated: the log holds the
// membership as text, and every server must be able to parse it.
func checkMembers(members []Member) error {
	text := newMembership(members).text()
	_, err := parseMembership(text)
	if err == nil && len(text) > MaxListBytes {
		err = fmt.Errorf("%d bytes: at most %d", len(text), MaxListBytes)
	}
	if err != nil {
		return fmt.Errorf("the list of servers in the configuration: %w", err)
	}
	return nil
}

// member returns the server with that id, or nil when it is not on the list.
func (m *membership) member(id uint64) *Member {
	for i := range m.members {
		if m.members[i].ID == id {
			return &m.members[i]
		}
	}
	return nil
}

// lists reports whether the server with that id is on the list, if there is a list.
func (m *membership) lists(id uint64) bool { return m != nil && m.member(id) != nil }

func (m *membership) voters() int {
	n := 0
	for i := range m.members {
		if !m.members[i].Observer {
			n++
		}
	}
	return n
}

// newMembership returns the list of a configuration file.
func newMembership(members []Member) *membership {
	m := &membership{members: slices.Clone(members)}
	m.sort()
	return m
}

func (m *membership) sort() {
	slices.SortFunc(m.members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
}

// sameServers reports whether two lists have the same servers in the same roles.
func (m *membership) sameServers(o *membership) bool {
	return slices.EqualFunc(m.members, o.members, func(a, b Member) bool { return a.ID == b.ID && a.Observer == b.Observer })
}

// parseState parses the output of state.
func parseState(state []byte) (*membership, error) {
	text, ids, named := bytes.Cut(state, []byte(namedKey))
	m, err := parseMembership(text)
	if err == nil && named {
		err = m.setNamed(string(ids))
	}
	if err != nil {
		return nil, err
	}
	m.raw = state
	return m, nil
}

// parseMembership parses a text of /zookeeper/config.
func parseMembership(text []byte) (*membership, error) {
	m, err := parseList(text)
	if err != nil {
		return nil, err
	}
	if id, over := m.tooLarge(); over {
		return nil, fmt.Errorf("server id %d: must be 0 to %d", id, MaxServer)
	}
	return m, nil
}

// tooLarge returns an id in m that is above MaxServer.
func (m *membership) tooLarge() (id uint64, over bool) {
	for i := range m.members {
		if m.members[i].ID > MaxServer {
			return m.members[i].ID, true
		}
	}
	return 0, false
}

// parseList parses input that may come from a client, so its ids may be too large. It
// stops at the first line too many.
func parseList(text []byte) (*membership, error) {
	m := &membership{}
	for line := range bytes.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		switch {
		case key == "" && !ok:
		case key == "version":
			v, err := strconv.ParseUint(value, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("membership version %q: %w", value, err)
			}
			m.version = v
		default:
			if len(m.members) == maxServers {
				return nil, fmt.Errorf("a list of more than %d servers", maxServers)
			}
			s, err := parseServer(key, value)
			if err != nil {
				return nil, err
			}
			if m.member(s.ID) != nil {
				return nil, fmt.Errorf("server %d is listed twice", s.ID)
			}
			m.members = append(m.members, s)
		}
	}
	m.sort()
	return m, nil
}

// parseServer parses server.N=host:quorumPort:electionPort[:role][;[host:]port], where
// | separates alternatives of the first part.
func parseServer(key, value string) (Member, error) {
	var m Member
	if n := len(key) + len(value); n > maxLine {
		return m, fmt.Errorf("a server with a line of %d bytes: at most %d", n, maxLine)
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
		if !isPort(p) {
			return a, fmt.Errorf("%q: %q is no port", s, p)
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
	if isPort(s) {
		return "0.0.0.0:" + s, nil
	}
	host, port, err := cutHost(s)
	if err != nil || !isPort(port) {
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

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil && len(s) <= len("65535")
}

// next returns the membership that a reconfig asks for, or an error code. The
// transaction supplies the version.
func (m *membership) next(q *proto.ReconfigRequest, policy tree.Policy) (*membership, proto.Code) {
	out, code := m.asked(q, policy)
	if code == proto.Ok && m.conflict(out) != nil {
		return nil, proto.ErrBadArguments
	}
	return out, code
}

// asked is next without the check of the addresses.
func (m *membership) asked(q *proto.ReconfigRequest, policy tree.Policy) (*membership, proto.Code) {
	lone := policy&tree.LoneVoter != 0
	out, code := m.changed(q)
	if q.NewMembers != proto.NullString {
		out, code = wholeMembership(q.NewMembers, lone)
	}
	if code != proto.Ok {
		return nil, code
	}
	if policy&tree.MultiAddress == 0 && slices.ContainsFunc(out.members, func(m Member) bool { return len(m.Alternates) > 0 }) {
		return nil, proto.ErrBadArguments
	}
	least := 2
	if lone {
		least = 1
	}
	if out.voters() < least || !out.replicable() {
		return nil, proto.ErrBadArguments
	}
	return out, proto.Ok
}

// replicable reports whether all servers will read the same list from the text of m.
func (m *membership) replicable() bool {
	text := m.text()
	again, err := parseList(text)
	return err == nil && len(text) <= MaxListBytes && bytes.Equal(again.text(), text)
}

// tooLong reports whether a reconfig has more text or more servers than a list may have.
// It is cheap for any request.
func tooLong(q *proto.ReconfigRequest) bool {
	if len(q.Joining)+len(q.Leaving)+len(q.NewMembers) > MaxListBytes {
		return true
	}
	return parts(q.Joining, ",") > maxServers || parts(q.Leaving, ",") > maxServers ||
		parts(q.NewMembers, ",\n") > maxServers+1 // with the line of the version
}

// parts returns the number of parts of s that are not blank.
func parts(s, separators string) (n int) {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if strings.TrimSpace(part) != "" {
			n++
		}
	}
	return n
}

// wholeMembership parses a list that replaces the current one. For a list that no
// configuration file could hold, ZooKeeper returns a stray MarshallingError.
func wholeMembership(list string, lone bool) (*membership, proto.Code) {
	out, err := parseList([]byte(strings.ReplaceAll(list, ",", "\n")))
	if err != nil {
		return nil, proto.ErrBadArguments
	}
	out.version = 0
	for i := range out.members {
		out.members[i].named = true
	}
	observers := len(out.members) - out.voters()
	switch {
	case out.voters() == 0 && (lone || observers > 0), out.voters() == 1 && !lone && observers > 0:
		return nil, proto.ErrMarshalling
	}
	return out, proto.Ok
}

func (m *membership) changed(q *proto.ReconfigRequest) (*membership, proto.Code) {
	out := &membership{members: slices.Clone(m.members)}
	leaving := make(map[int64]bool)
	for _, id := range list(q.Leaving) {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return nil, proto.ErrMarshalling // ZooKeeper throws a stray NumberFormatException here
		}
		leaving[n] = true
	}
	out.members = slices.DeleteFunc(out.members, func(m Member) bool { return leaving[int64(m.ID)] })
	users := make(map[string]int) // servers by endpoint
	for i := range out.members {
		out.members[i].use(users, 1)
	}
	for _, joiner := range list(q.Joining) {
		key, value, ok := strings.Cut(joiner, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" || value == "" {
			return nil, proto.ErrBadArguments
		}
		id, err := strconv.ParseInt(key[strings.LastIndexByte(key, '.')+1:], 10, 64) // the part before the dot doesn't matter
		if err != nil {
			return nil, proto.ErrMarshalling // as above
		}
		s, err := parseServer(fmt.Sprint("server.", id), value)
		if err != nil || s.ClientAddr == "" {
			return nil, proto.ErrBadArguments
		}
		s.named = true
		if old := out.member(s.ID); old != nil {
			old.use(users, -1)
			out.members = slices.DeleteFunc(out.members, func(m Member) bool { return m.ID == s.ID })
		}
		// As in ZooKeeper, only the addresses of a joining server are checked.
		if slices.ContainsFunc(s.endpoints(), func(e string) bool { return users[e] > 0 }) {
			return nil, proto.ErrBadArguments
		}
		s.use(users, 1)
		out.members = append(out.members, s)
	}
	out.sort()
	return out, proto.Ok
}

// list splits a comma-separated list as ZooKeeper does: it trims blanks and ignores
// empty parts, and null means no list.
func list(s string) []string {
	if s == proto.NullString {
		return nil
	}
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

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
		if ip := net.ParseIP(host); !wildcard(host) && !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
			out = append(out, strings.ToLower(addr))
		}
	}
	return out
}
