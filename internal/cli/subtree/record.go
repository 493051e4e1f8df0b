package subtree

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// Constants at the beginning of a file.
const (
	formatName    = "zkgo-subtree"
	formatVersion = 1
)

// header is the beginning of a file.
type header struct {
	Format  string `json:"format" yaml:"format"`
	Version int    `json:"version" yaml:"version"`
	// Root is the subtree's path.
	Root text `json:"root" yaml:"root"`
	// Trailer means that a YAML file without a trailer is truncated. JSON has its own
	// end mark.
	Trailer bool `json:"-" yaml:"trailer,omitempty"`
}

func (h *header) check() error {
	switch {
	case h.Format != formatName:
		return fmt.Errorf("not an export of a subtree: format is %q, want %q", h.Format, formatName)
	case h.Version < 1 || h.Version > formatVersion:
		return fmt.Errorf("version is %d, this program supports 1 to %d", h.Version, formatVersion)
	}
	return nil
}

// record is a znode in a file.
type record struct {
	// Path is relative to the root: "/" for the root itself.
	Path text `json:"path" yaml:"path"`
	// Data is for text, Base64 for everything else. Neither means null data.
	Data   *text `json:"data,omitempty" yaml:"data,omitempty"`
	Base64 *text `json:"base64,omitempty" yaml:"base64,omitempty"`
	// ACL has entries in zkCli.sh's format, scheme:id:perms. No entries mean
	// world:anyone:cdrwa.
	ACL []text `json:"acl,omitempty" yaml:"acl,omitempty"`
	// Ephemeral is the owning session in hexadecimal.
	Ephemeral text `json:"ephemeral,omitempty" yaml:"ephemeral,omitempty"`
	Container bool `json:"container,omitempty" yaml:"container,omitempty"`
	// TTL is in milliseconds.
	TTL  int64       `json:"ttl,omitempty" yaml:"ttl,omitempty"`
	Stat *statRecord `json:"stat,omitempty" yaml:"stat,omitempty"`
}

// statRecord is for human readers of a file; imports ignore it.
type statRecord struct {
	Czxid    text  `json:"czxid" yaml:"czxid"`
	Mzxid    text  `json:"mzxid" yaml:"mzxid"`
	Ctime    text  `json:"ctime" yaml:"ctime"`
	Mtime    text  `json:"mtime" yaml:"mtime"`
	Version  int32 `json:"version" yaml:"version"`
	Aversion int32 `json:"aversion" yaml:"aversion"`
	Cversion int32 `json:"cversion" yaml:"cversion"`
}

// newRecord converts a znode. asText reports whether data may be written as text.
func newRecord(n *Node, stat bool, asText func(string) bool) record {
	r := record{Path: text(n.Path), Container: n.Container, TTL: n.TTL.Milliseconds()}
	if r.Path == "" {
		r.Path = "/"
	}
	if n.Data != nil {
		if s := text(n.Data); printable(string(s)) && asText(string(s)) {
			r.Data = &s
		} else {
			s = text(base64.StdEncoding.EncodeToString(n.Data))
			r.Base64 = &s
		}
	}
	if !sameACL(n.ACL, client.WorldACL(client.PermAll)) {
		for _, a := range n.ACL {
			r.ACL = append(r.ACL, text(FormatACL(a)))
		}
	}
	if n.Ephemeral() {
		r.Ephemeral = hex(n.Stat.EphemeralOwner)
	}
	if s := &n.Stat; stat {
		r.Stat = &statRecord{
			Czxid: hex(s.Czxid), Mzxid: hex(s.Mzxid),
			Ctime: formatTime(s.Ctime), Mtime: formatTime(s.Mtime),
			Version: s.Version, Aversion: s.Aversion, Cversion: s.Cversion,
		}
	}
	return r
}

func formatTime(ms int64) text {
	return text(time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"))
}

func hex(n int64) text { return text(fmt.Sprintf("0x%x", uint64(n))) } //nolint:gosec // all 64 bits are used

// printable reports whether a text can be displayed and read unchanged.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// node converts a record to a znode.
func (r *record) node() (*Node, error) {
	n := &Node{Path: string(r.Path), Container: r.Container, TTL: time.Duration(r.TTL) * time.Millisecond}
	if err := proto.ValidatePath(n.Path); err != nil {
		return nil, fmt.Errorf("path %q: %w", r.Path, err)
	}
	if n.Path == "/" {
		n.Path = ""
	}
	var err error
	switch {
	case r.Data != nil && r.Base64 != nil:
		return nil, fmt.Errorf("%s has data twice, as text and as base64", r.Path)
	case r.Data != nil:
		n.Data = []byte(*r.Data)
	case r.Base64 != nil:
		if n.Data, err = base64.StdEncoding.Strict().DecodeString(string(*r.Base64)); err != nil {
			return nil, fmt.Errorf("%s: base64: %w", r.Path, err)
		}
	}
	n.ACL = client.WorldACL(client.PermAll)
	if len(r.ACL) > 0 {
		if n.ACL, err = parseACLs(r.ACL); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Path, err)
		}
	}
	if r.Ephemeral != "" {
		owner, err := strconv.ParseUint(strings.TrimPrefix(string(r.Ephemeral), "0x"), 16, 64)
		if err != nil || owner == 0 {
			return nil, fmt.Errorf("%s: ephemeral: %q is not a session id", r.Path, r.Ephemeral)
		}
		n.Stat.EphemeralOwner = int64(owner) //nolint:gosec // all 64 bits are used
	}
	return n, r.checkKind()
}

func (r *record) checkKind() error {
	kinds := 0
	for _, is := range []bool{r.Ephemeral != "", r.Container, r.TTL != 0} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return fmt.Errorf("%s: a znode can be only one of: ephemeral, container, with a time to live", r.Path)
	case r.TTL < 0 || r.TTL > proto.MaxTTL:
		return fmt.Errorf("%s: a time to live of %d ms", r.Path, r.TTL)
	}
	return nil
}

// FormatACL formats an ACL entry for zkCli.sh, scheme:id:perms.
func FormatACL(a client.ACL) string {
	return a.ID.Scheme + ":" + a.ID.ID + ":" + PermText(a.Perms)
}

// ParseACL parses the output of FormatACL. The scheme ends at the first colon, and
// the permissions begin after the last one.
func ParseACL(s string) (client.ACL, error) {
	scheme, rest, ok := strings.Cut(s, ":")
	last := strings.LastIndexByte(rest, ':')
	if !ok || last < 0 {
		return client.ACL{}, fmt.Errorf("%q is not an ACL entry of the form scheme:id:perms", s)
	}
	a := client.ACL{ID: client.ID{Scheme: scheme, ID: rest[:last]}}
	for _, letter := range []byte(rest[last+1:]) {
		perm := PermOf(rune(letter))
		if perm == 0 {
			return client.ACL{}, fmt.Errorf("%q: %q is not a permission: want c, d, r, w or a", s, letter)
		}
		a.Perms |= perm
	}
	return a, nil
}

func parseACLs(list []text) ([]client.ACL, error) {
	acl := make([]client.ACL, len(list))
	var errs error
	for i, s := range list {
		a, err := ParseACL(string(s))
		acl[i], errs = a, errors.Join(errs, err)
	}
	return acl, errs
}

// permLetters lists the permissions in zkCli.sh's order.
var permLetters = [...]struct {
	letter rune
	perm   client.Perms
}{
	{'c', client.PermCreate},
	{'d', client.PermDelete},
	{'r', client.PermRead},
	{'w', client.PermWrite},
	{'a', client.PermAdmin},
}

// PermOf returns the permission for a letter, or 0 if there is none.
func PermOf(letter rune) client.Perms {
	for _, p := range permLetters {
		if p.letter == letter {
			return p.perm
		}
	}
	return 0
}

// PermText formats permissions in zkCli.sh's order.
func PermText(perms client.Perms) string {
	var b strings.Builder
	for _, p := range permLetters {
		if perms&p.perm != 0 {
			b.WriteRune(p.letter)
		}
	}
	return b.String()
}
