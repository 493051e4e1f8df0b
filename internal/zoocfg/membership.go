package zoocfg

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// isMember reports whether a key belongs to the membership. ZooKeeper checks the
// prefix only: groupies=… is a group, and an invalid one.
func isMember(key string) bool {
	return strings.HasPrefix(key, "server.") || strings.HasPrefix(key, "group") || strings.HasPrefix(key, "weight")
}

// setMember applies one line of the membership. ZooKeeper doesn't trim these values:
// a blank after a port is part of the port.
func (c *Config) setMember(key, value string) error {
	id, err := memberID(key)
	if err != nil {
		return err
	}
	if err := c.sameMember(key, id); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(key, "server.") && id > MaxID:
		return tooLargeID(id)
	case strings.HasPrefix(key, "server."):
		s, err := ParseServerLine(id, value)
		if err != nil {
			return err
		}
		c.putServer(s)
	case strings.HasPrefix(key, "group"):
		return c.setGroup(id, value)
	default:
		w, ok := parseLong(value)
		if !ok {
			return expected("an integer without blanks", value)
		}
		if c.Weights == nil {
			c.Weights = map[uint64]int64{}
		}
		c.Weights[id] = w
	}
	return nil
}

// sameMember returns an error if another spelling of the key, as server.01 for server.1,
// sets the same member already. ZooKeeper keeps one of the two lines.
func (c *Config) sameMember(key string, id uint64) error {
	kind := "weight"
	var known bool
	switch {
	case strings.HasPrefix(key, "server."):
		kind = "server."
		_, known = c.Server(id)
	case strings.HasPrefix(key, "group"):
		kind = "group"
		_, known = c.Groups[id]
	default:
		_, known = c.Weights[id]
	}
	if !known {
		return nil
	}
	for other, at := range c.origin {
		if other == key || !strings.HasPrefix(other, kind) {
			continue
		}
		if same, err := memberID(other); err == nil && same == id {
			return fmt.Errorf("%s%s has the same number %d: expected one line for each", place(at.file, at.line), other, id)
		}
	}
	return nil
}

// MaxID is the highest server id; the lowest is 0.
const MaxID = 255

func tooLargeID(id uint64) error {
	return fmt.Errorf("server id %d is too large: the id is one byte of every session id; expected a number from 0 to %d, "+
		"here and in that server's myid file", id, MaxID)
}

// memberID returns the number after the first dot of the key.
func memberID(key string) (uint64, error) {
	text := key[strings.IndexByte(key, '.')+1:]
	id, ok := parseLong(text)
	if !ok || id < 0 {
		return 0, expected("a number after the dot of the key", text)
	}
	return uint64(id), nil
}

func (m *Membership) putServer(s Server) {
	i, found := slices.BinarySearchFunc(m.Servers, s, func(a, b Server) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	if found {
		m.Servers[i] = s
		return
	}
	m.Servers = slices.Insert(m.Servers, i, s)
}

func (m *Membership) setGroup(id uint64, value string) error {
	var ids []uint64
	for _, part := range split(value, ":") {
		sid, ok := parseLong(part)
		if !ok || sid < 0 {
			return expected("server ids separated by colons", value)
		}
		ids = append(ids, uint64(sid))
	}
	if m.Groups == nil {
		m.Groups = map[uint64][]uint64{}
	}
	m.Groups[id] = ids
	return nil
}

func (m *Membership) setVersion(value string) error {
	v, err := strconv.ParseInt(value, 16, 64)
	if err != nil || v < 0 {
		return expected("a hexadecimal number", value)
	}
	m.ConfigVersion = uint64(v)
	return nil
}

// readDynamic reads the membership from the file in dynamicConfigFile.
func (c *Config) readDynamic() error {
	file := c.DynamicConfigFile
	text, err := c.readFile(file)
	if err != nil {
		return c.fail("dynamicConfigFile", err)
	}
	props, err := properties(string(text))
	if err != nil {
		return inFile(err, file)
	}
	c.Membership = Membership{ConfigVersion: versionOf(file)}
	maps.DeleteFunc(c.origin, func(key string, _ origin) bool { return isMember(key) })
	var errs problems
	for _, p := range c.lastOfEach(props) {
		key := trim(p.key)
		switch {
		case key == "version":
			err = errors.New("dynamic file shouldn't have version inside")
		case isMember(key):
			c.origin[key] = origin{file, p.line}
			err = c.setMember(key, p.value)
		default:
			err = fmt.Errorf("Unrecognised parameter: %s: expected server.N, group.N or weight.N", key)
			if rest, marked := strings.CutPrefix(key, decodedMark); marked {
				key = rest
				err = fmt.Errorf("the file begins with a byte order mark, remove it (Unrecognised parameter: %s)", visible(byteOrderMark+rest))
			}
		}
		if err != nil {
			errs.add(&Error{File: file, Line: p.line, Key: key, Msg: err.Error(), Err: err})
			delete(c.origin, key)
		}
	}
	return errs.join()
}

// versionOf returns the hexadecimal suffix of a dynamic file's name, or 0 if there is
// none.
func versionOf(file string) uint64 {
	v, err := strconv.ParseInt(file[strings.LastIndexByte(file, '.')+1:], 16, 64)
	if err != nil || v < 0 || !strings.Contains(file, ".") {
		return 0
	}
	return uint64(v)
}

// checkGroups applies the checks of ZooKeeper's QuorumHierarchical to groups and
// weights.
func (m *Membership) checkGroups() error {
	if len(m.Groups) == 0 && len(m.Weights) == 0 {
		return nil
	}
	groupOf := map[uint64]uint64{}
	for gid, ids := range m.Groups {
		for _, id := range ids {
			if _, twice := groupOf[id]; twice {
				return fmt.Errorf("Server %d is in multiple groups", id)
			}
			groupOf[id] = gid
		}
	}
	for _, s := range m.Voters() {
		if _, ok := groupOf[s.ID]; !ok {
			return fmt.Errorf("Server %d is not in a group", s.ID)
		}
	}
	for id, gid := range groupOf {
		s, ok := m.Server(id)
		if _, weighted := m.Weights[id]; !weighted && (!ok || s.Role == Observer) {
			return fmt.Errorf("group.%d names server %d, which is no participant and has no weight", gid, id)
		}
	}
	return nil
}

// hierarchical returns the reason why groups and weights aren't supported. They are
// supported if they amount to a plain majority: one group with equal weights for all
// voters.
func (m *Membership) hierarchical() string {
	if len(m.Groups) == 0 {
		return ""
	}
	voters := m.Voters()
	if len(m.Groups) > 1 {
		return fmt.Sprintf("hierarchical quorums are not supported: %d groups are configured, "+
			"but a majority of all voters decides here; remove the group and weight lines", len(m.Groups))
	}
	for _, s := range voters {
		if m.weight(s.ID) != m.weight(voters[0].ID) || m.weight(s.ID) <= 0 {
			return "hierarchical quorums are not supported: every voter counts the same here, " +
				"whatever its weight; remove the group and weight lines"
		}
	}
	for _, ids := range m.Groups {
		for _, id := range ids {
			if s, ok := m.Server(id); !ok || s.Role == Observer {
				return fmt.Sprintf("hierarchical quorums are not supported: server %d has a weight but no vote", id)
			}
		}
	}
	return ""
}

func (m *Membership) weight(id uint64) int64 {
	if w, ok := m.Weights[id]; ok {
		return w
	}
	return 1
}

// Text returns the content of the config node: a line for each server, groups and
// weights if there are any, and the hexadecimal version without a newline.
func (m *Membership) Text() string {
	var b strings.Builder
	for _, s := range m.Servers {
		b.WriteString(s.Line() + "\n")
	}
	for _, gid := range slices.Sorted(maps.Keys(m.Groups)) {
		var ids []string
		for _, id := range slices.Sorted(slices.Values(m.Groups[gid])) {
			ids = append(ids, strconv.FormatUint(id, 10))
		}
		fmt.Fprintf(&b, "group.%d=%s\n", gid, strings.Join(ids, ":"))
	}
	weights := m.allWeights()
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		fmt.Fprintf(&b, "weight.%d=%d\n", id, weights[id])
	}
	b.WriteString("version=" + strconv.FormatUint(m.ConfigVersion, 16))
	return b.String()
}

// allWeights returns the weights, with weight 1 for voters without a weight line.
// ZooKeeper adds those only if there are groups.
func (m *Membership) allWeights() map[uint64]int64 {
	all := maps.Clone(m.Weights)
	if len(m.Groups) == 0 {
		return all
	}
	if all == nil {
		all = map[uint64]int64{}
	}
	for _, s := range m.Voters() {
		all[s.ID] = m.weight(s.ID)
	}
	return all
}

// ParseMembership parses a list of servers, as in a dynamic file: server, group, weight and
// version lines and nothing else. Messages use name as the file name.
func ParseMembership(name, text string) (*Membership, error) {
	c := blank()
	c.Path = name
	props, err := properties(strings.TrimPrefix(text, byteOrderMark))
	if err != nil {
		return nil, inFile(err, name)
	}
	var errs problems
	for _, p := range props {
		if key := trim(p.key); !isMember(key) && key != "version" {
			errs.add(&Error{File: name, Line: p.line, Key: key, Msg: "Unrecognised parameter: expected server.N, group.N or weight.N"})
			continue
		}
		if have, twice := c.origin[trim(p.key)]; twice {
			errs.add(&Error{File: name, Line: p.line, Key: trim(p.key), Msg: "is set in line " + itoa(have.line) + " already"})
			continue
		}
		errs.add(c.apply(p, name))
	}
	if err := errs.join(); err != nil {
		return nil, err
	}
	switch reason := c.hierarchical(); {
	case reason != "":
		return nil, &Error{File: name, Msg: reason}
	case len(c.Servers) == 0:
		return nil, &Error{File: name, Msg: "there is no server in it"}
	}
	return &c.Membership, nil
}
