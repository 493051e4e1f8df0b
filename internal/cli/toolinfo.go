package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// znodeInfo is the printed form of a znode.
type znodeInfo struct {
	Path     string   `json:"path"`
	Bytes    int32    `json:"bytes"`
	Children int32    `json:"children"`
	Version  int32    `json:"version"`
	Owner    string   `json:"ephemeralOwner,omitempty"`
	Czxid    string   `json:"czxid"`
	Mzxid    string   `json:"mzxid"`
	Ctime    string   `json:"ctime"`
	Mtime    string   `json:"mtime"`
	Data     *string  `json:"data,omitempty"`
	Base64   string   `json:"base64,omitempty"`
	ACL      []string `json:"acl,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// newInfo describes a znode, with its data if data is true.
func newInfo(path string, n *subtree.Node, data bool) znodeInfo {
	if n.Err != nil {
		return znodeInfo{Path: path, Error: n.Err.Error()}
	}
	s := &n.Stat
	info := znodeInfo{
		Path: path, Bytes: s.DataLength, Children: s.NumChildren, Version: s.Version,
		Czxid: hexID(s.Czxid), Mzxid: hexID(s.Mzxid), Ctime: isoTime(s.Ctime), Mtime: isoTime(s.Mtime),
	}
	if n.Ephemeral() {
		info.Owner = hexID(s.EphemeralOwner)
	}
	if data {
		d := NewData(n.Data)
		info.Data, info.Base64 = d.Data, d.Base64
	}
	for _, a := range n.ACL {
		info.ACL = append(info.ACL, subtree.FormatACL(a))
	}
	return info
}

func hexID(n int64) string { return "0x" + strconv.FormatUint(uint64(n), 16) } //nolint:gosec // all 64 bits are used

func isoTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// shortData formats data in one line of at most width characters.
func shortData(data []byte, width int) string {
	if data == nil {
		return "null"
	}
	text := true
	for _, r := range string(data[:min(len(data), 4*width)]) {
		if r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			text = false
			break
		}
	}
	var s string
	if text {
		s = strconv.Quote(string(data[:min(len(data), 4*width)]))
	} else {
		s = fmt.Sprintf("%x", data[:min(len(data), width)])
	}
	if r := []rune(s); len(r) > width {
		s = string(r[:width-1]) + "…"
	}
	return s
}

// byteCount formats a number of bytes in human-readable form.
func byteCount(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// plural formats a number with its noun.
func plural(n int, noun string) string {
	return strconv.Itoa(n) + " " + numbered(n, noun)
}

// numbered returns a noun in the form that follows the number.
func numbered(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// whole parses the value of an option as a whole number.
func (c *Call) whole(option string, least int64) (int64, error) {
	v := c.Value(option)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil || n < least {
		return 0, misuse("-%s %s: want an integer of at least %d", option, strings.TrimSpace(v), least)
	}
	return n, nil
}
