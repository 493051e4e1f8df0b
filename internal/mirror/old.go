package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// Old describes the ensemble that is to be replaced.
type Old struct {
	Servers []OldServer
	// Settings are the lines of the ensemble's zoo.cfg, except the list of servers; nil if the
	// ensemble was named by its addresses.
	Settings map[string]string
}

// OldServer is a server of the old ensemble.
type OldServer struct {
	ID       int64    `json:"id"`               // -1: unknown
	Quorum   []string `json:"quorum,omitempty"` // host:port at which it listens as the leader
	Client   string   `json:"client,omitempty"` // host:port for clients; "" if unknown
	Secure   string   `json:"secure,omitempty"` // the same for clients with TLS
	Observer bool     `json:"observer,omitempty"`

	named bool // the operator has named Client
}

// String returns the server's number and an address.
func (s *OldServer) String() string {
	addr := s.Client
	if addr == "" && s.Secure != "" {
		addr = s.Secure
	}
	if addr == "" && len(s.Quorum) > 0 {
		addr = s.Quorum[0]
	}
	if s.ID < 0 {
		return addr
	}
	return fmt.Sprintf("server %d (%s)", s.ID, addr)
}

// Host returns the name of the server's machine.
func (s *OldServer) Host() string {
	for _, addr := range append([]string{s.Client, s.Secure}, s.Quorum...) {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			return host
		}
	}
	return ""
}

// Describe reads the operator's description of the old ensemble. The text from is either a list of
// quorum addresses, host:port,…, or the zoo.cfg of one of the servers. Clients is a list of client
// addresses, one for each server in the order of from; it may be empty.
func Describe(from, clients string) (*Old, error) {
	old, err := readFrom(from)
	if err != nil {
		return nil, err
	}
	if clients == "" {
		return old, nil
	}
	addrs, err := addresses(clients, "a client address, e.g. zk1:2181")
	switch {
	case err != nil:
		return nil, err
	case len(addrs) != len(old.Servers):
		return nil, fmt.Errorf("%d client addresses for %d servers: expected one for each, in the order of %s", len(addrs), len(old.Servers), from)
	}
	for i, addr := range addrs {
		old.Servers[i].Client, old.Servers[i].named = addr, true
	}
	return old, nil
}

func readFrom(from string) (*Old, error) {
	info, err := os.Stat(from)
	switch {
	case err == nil && !info.IsDir():
		return readOld(from)
	case strings.ContainsRune(from, filepath.Separator) || strings.HasSuffix(from, ".cfg"):
		if err == nil {
			err = fmt.Errorf("%s is a directory", from)
		}
		return nil, fmt.Errorf("the old ensemble's zoo.cfg: %w", err)
	}
	addrs, err := addresses(from, "a quorum address, e.g. zk1:2888 of server.1=zk1:2888:3888, or the name of a zoo.cfg")
	if err != nil {
		return nil, err
	}
	old := new(Old)
	for _, addr := range addrs {
		old.Servers = append(old.Servers, OldServer{ID: -1, Quorum: []string{addr}})
	}
	return old, nil
}

// addresses splits a list of addresses.
func addresses(list, expected string) (addrs []string, err error) {
	for part := range strings.SplitSeq(list, ",") {
		addr := strings.TrimSpace(part)
		host, port, err := net.SplitHostPort(addr)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
			return nil, fmt.Errorf("%q is not %s", addr, expected)
		}
		if slices.Contains(addrs, addr) {
			return nil, fmt.Errorf("%s is listed twice", addr)
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// readOld reads a zoo.cfg. We don't read it as our own configuration: it may belong to another
// machine, and have keys that we don't know.
func readOld(path string) (*Old, error) {
	settings, servers, err := readProperties(path)
	if err != nil {
		return nil, err
	}
	if dynamic := settings["dynamicConfigFile"]; dynamic != "" {
		_, servers, err = readProperties(dynamic)
		if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(dynamic) {
			_, servers, err = readProperties(filepath.Join(filepath.Dir(path), dynamic))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: dynamicConfigFile: %w", path, err)
		}
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s has no server.N lines: a standalone server has no leader that can be followed; stop it and use zkgo import", path)
	}
	old := &Old{Servers: servers, Settings: settings}
	for i := range servers {
		s := &servers[i]
		s.Secure = withPort(s.Host(), settings["secureClientPort"])
		if s.Client == "" {
			s.Client = withPort(s.Host(), settings["clientPort"])
		}
	}
	return old, nil
}

// withPort returns host:port, or "" if there is no port.
func withPort(host, port string) string {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// readProperties reads a zoo.cfg or a dynamic file.
func readProperties(path string) (settings map[string]string, servers []OldServer, err error) {
	text, err := smallfile.Read(path)
	if err != nil {
		return nil, nil, err
	}
	if settings, servers, err = parseProperties(string(text)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return settings, servers, nil
}

// parseProperties separates the servers of a configuration, in the order of their ids, from
// its other lines.
func parseProperties(text string) (settings map[string]string, servers []OldServer, err error) {
	lines, err := zoocfg.Properties(text)
	if err != nil {
		return nil, nil, err
	}
	settings = make(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		value := strings.TrimSpace(lines[key])
		number, is := strings.CutPrefix(strings.TrimSpace(key), "server.")
		if !is {
			settings[strings.TrimSpace(key)] = value
			continue
		}
		id, err := strconv.ParseUint(number, 10, 63)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: expected a number after server", key)
		}
		s, err := zoocfg.ParseServerLine(id, value)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", key, err)
		}
		servers = append(servers, serverOf(&s))
	}
	slices.SortFunc(servers, func(a, b OldServer) int { return int(a.ID - b.ID) })
	return settings, servers, nil
}

// serverOf converts a line server.N.
func serverOf(s *zoocfg.Server) OldServer {
	o := OldServer{ID: int64(s.ID), Observer: s.Role == zoocfg.Observer}
	for _, a := range s.Addrs {
		o.Quorum = append(o.Quorum, net.JoinHostPort(strings.Trim(a.Host, "[]"), strconv.Itoa(a.QuorumPort)))
	}
	if s.ClientHost != "" {
		host := strings.Trim(s.ClientHost, "[]")
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			host = strings.Trim(s.Addrs[0].Host, "[]")
		}
		o.Client = withPort(host, strconv.Itoa(s.ClientPort))
	}
	return o
}

// AddMembers adds the leader's configuration, the text of learner.Conn.Members. Only ZooKeeper 3.5
// and later send one. The servers that the operator named remain, because a server that was removed
// from the configuration may still run.
func (o *Old) AddMembers(text string) error {
	_, servers, err := parseProperties(text)
	if err != nil {
		return fmt.Errorf("the configuration that the leader sent: %w", err)
	}
	for _, s := range servers {
		i := slices.IndexFunc(o.Servers, func(have OldServer) bool {
			return have.ID == s.ID || have.ID < 0 && have.Client != "" && have.Client == s.Client || have.ID < 0 && slices.ContainsFunc(s.Quorum, func(addr string) bool { return slices.Contains(have.Quorum, addr) })
		})
		if i < 0 {
			o.Servers = append(o.Servers, s)
			continue
		}
		have := &o.Servers[i]
		have.ID, have.Quorum, have.Observer = s.ID, s.Quorum, s.Observer
		if s.Client != "" && !have.named { // zoo.cfg has one client address for all servers
			have.Client = s.Client
		}
	}
	return nil
}

// ForgetStreams leaves one entry for each server of an ensemble of zkgo. Its list of servers lacks
// the ports at which they send their state (observerMasterPort), so we can't match the list with
// the operator's addresses of these ports. If the operator has named as many client addresses as
// there are servers, clients use these addresses; otherwise they use the addresses in the list.
//
// The servers that a mirror follows remain in any case: the list is theirs, and clients must not
// reach them either.
func (o *Old) ForgetStreams(mirror bool) {
	listed, named := 0, 0
	for i := range o.Servers {
		switch s := &o.Servers[i]; {
		case s.named:
			named++
		case s.ID >= 0:
			listed++
		}
	}
	if listed == 0 {
		return
	}
	o.Servers = slices.DeleteFunc(o.Servers, func(s OldServer) bool {
		return !s.named && (s.ID < 0 || named >= listed && !mirror)
	})
}

// QuorumAddrs returns the addresses where the leader may listen.
func (o *Old) QuorumAddrs() (addrs []string) {
	for i := range o.Servers {
		if !o.Servers[i].Observer {
			addrs = append(addrs, o.Servers[i].Quorum...)
		}
	}
	return addrs
}

// ClientAddrs returns the addresses where clients may connect, as far as they are known.
func (o *Old) ClientAddrs() (addrs []string) {
	for i := range o.Servers {
		for _, addr := range []string{o.Servers[i].Client, o.Servers[i].Secure} {
			if addr != "" && !slices.Contains(addrs, addr) {
				addrs = append(addrs, addr)
			}
		}
	}
	return addrs
}

// QuorumTLS reports whether zoo.cfg says that the servers use TLS between each other.
func (o *Old) QuorumTLS() bool { return o.is("sslQuorum") }

// QuorumSASL reports whether zoo.cfg says that the servers authenticate each other, and which
// section of the JAAS file has a learner's login.
func (o *Old) QuorumSASL() (section string, is bool) {
	section = o.Settings["quorum.auth.learner.saslLoginContext"]
	if section == "" {
		section = "QuorumLearner"
	}
	return section, o.is("quorum.auth.enableSasl")
}

func (o *Old) is(key string) bool { return strings.EqualFold(o.Settings[key], "true") }
