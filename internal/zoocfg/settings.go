package zoocfg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Setting is a key with its effective value.
type Setting struct {
	Key string `json:"key"`
	// Value is formatted as in the file; passwords are hidden.
	Value string `json:"value"`
	// Origin is file:line, --set, the variable of the JVM's flags, or default.
	Origin  string  `json:"origin"`
	Verdict Verdict `json:"verdict,omitempty"`
	Words   string  `json:"words,omitempty"`

	file string
	line int
}

// byDefault is the origin of keys that weren't set.
const byDefault = "default"

// Set reports whether the key was set explicitly.
func (s *Setting) Set() bool { return s.Origin != byDefault }

// Settings returns all keys that have an effect in zkgo with their effective values,
// in the order of the table in docs/operate/compatibility.md, followed by the members.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, d := range Descriptions() {
		k := knownKeys[d.Key]
		if k.ignored || k.set.show == nil {
			continue
		}
		all = append(all, c.setting(d.Key, k.set.show(c)))
	}
	return append(all, c.members()...)
}

// setting returns one key with its value.
func (c *Config) setting(key, value string) Setting {
	s := Setting{Key: key, Value: value, Origin: byDefault}
	if d, ok := Describe(key); ok {
		s.Verdict, s.Words = d.Verdict, d.Words
	}
	if value != "" && secret(key) {
		s.Value = hidden
	}
	o, set := c.originOf(key)
	switch {
	case !set:
	case o.line > 0:
		s.Origin = fmt.Sprintf("%s:%d", o.file, o.line)
	default:
		s.Origin = o.file
	}
	s.file, s.line = o.file, o.line
	return s
}

// originOf returns the origin of a key's value. The server's own line has precedence for the peer
// type and for the client port and address.
func (c *Config) originOf(key string) (origin, bool) {
	if self, ok := c.Self(); ok {
		line := fmt.Sprintf("server.%d", self.ID)
		if key == "peerType" || self.ClientHost != "" && (key == "clientPort" || key == "clientPortAddress") {
			key = line
		}
	}
	o, ok := c.origin[key]
	return o, ok
}

// members returns the keys with a number, and the server's own id.
func (c *Config) members() []Setting {
	var all []Setting
	if c.HasMyID {
		id := Setting{Key: "myid", Value: fmt.Sprint(c.MyID), Origin: c.myIDFrom, Words: "the number of this server"}
		if c.myIDFrom == "" {
			id.Origin = "given"
		}
		all = append(all, id)
	}
	for _, s := range c.Servers {
		all = append(all, c.setting(fmt.Sprintf("server.%d", s.ID), strings.TrimPrefix(s.Line(), fmt.Sprintf("server.%d=", s.ID))))
	}
	for id, ids := range c.Groups {
		all = append(all, c.setting(fmt.Sprintf("group.%d", id), strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ":"), "[]")))
	}
	for id, weight := range c.Weights {
		all = append(all, c.setting(fmt.Sprintf("weight.%d", id), fmt.Sprint(weight)))
	}
	for name, class := range c.Auth.Providers {
		all = append(all, c.setting(authProviderPrefix+name, class))
	}
	slices.SortStableFunc(all, func(a, b Setting) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// Lines returns the settings that were made explicitly, in the order of the files,
// including those without an effect.
func (c *Config) Lines() []Setting {
	var all []Setting
	for _, s := range c.Settings() {
		if _, own := c.origin[s.Key]; own || s.Key == "myid" {
			all = append(all, s)
		}
	}
	raw := c.rawValues()
	for _, key := range c.Ignored {
		all = append(all, c.setting(key, raw[key]))
	}
	slices.SortStableFunc(all, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(c.fileOrder(a.file), c.fileOrder(b.file)), cmp.Compare(a.line, b.line))
	})
	return all
}

// fileOrder sorts the configuration file before the files it names and before
// settings made elsewhere.
func (c *Config) fileOrder(file string) int {
	switch file {
	case c.Path:
		return 0
	case setByHand:
		return 2
	}
	return 1
}

// rawValues returns the values as written in the file.
func (c *Config) rawValues() map[string]string {
	all := map[string]string{}
	props, err := properties(c.Text)
	if err != nil {
		return all // Parse has rejected such a file
	}
	for _, p := range props {
		all[trim(p.key)] = trim(p.value)
	}
	return all
}
