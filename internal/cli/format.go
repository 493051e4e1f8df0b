package cli

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/terminal"
)

// javaDate is the layout of java.util.Date.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

// line is one line of a znode's output.
type line struct{ key, value string }

// statLines returns the lines of a Stat.
func statLines(s client.Stat) []line {
	date := func(v int64) string { return time.UnixMilli(v).Format(javaDate) }
	number := func(v int32) string { return fmt.Sprint(v) }
	return []line{
		{"cZxid", hexID(s.Czxid)},
		{"ctime", date(s.Ctime)},
		{"mZxid", hexID(s.Mzxid)},
		{"mtime", date(s.Mtime)},
		{"pZxid", hexID(s.Pzxid)},
		{"cversion", number(s.Cversion)},
		{"dataVersion", number(s.Version)},
		{"aclVersion", number(s.Aversion)},
		{"ephemeralOwner", hexID(s.EphemeralOwner)},
		{"dataLength", number(s.DataLength)},
		{"numChildren", number(s.NumChildren)},
	}
}

// printStat prints a Stat, in columns on a terminal.
func printStat(w io.Writer, t terminal.Term, s client.Stat) {
	for _, l := range statLines(s) {
		key := l.key
		if t.Width > 0 {
			key = fmt.Sprintf("%-14s", key)
		}
		fmt.Fprintf(w, "%s = %s\n", t.Paint(terminal.Faint, key), l.value)
	}
}

// Stat is the JSON form of a znode's metadata. We write zxids and sessions as hexadecimal
// strings, because many JSON parsers lose digits of such large numbers. Times are in UTC.
type Stat struct {
	Czxid          string `json:"cZxid"`
	Ctime          string `json:"ctime"`
	Mzxid          string `json:"mZxid"`
	Mtime          string `json:"mtime"`
	Pzxid          string `json:"pZxid"`
	Cversion       int32  `json:"cversion"`
	DataVersion    int32  `json:"dataVersion"`
	ACLVersion     int32  `json:"aclVersion"`
	EphemeralOwner string `json:"ephemeralOwner"`
	DataLength     int32  `json:"dataLength"`
	NumChildren    int32  `json:"numChildren"`
}

// NewStat returns the JSON form of metadata.
func NewStat(s client.Stat) *Stat {
	return &Stat{
		Czxid: hexID(s.Czxid), Ctime: isoTime(s.Ctime), Mzxid: hexID(s.Mzxid), Mtime: isoTime(s.Mtime), Pzxid: hexID(s.Pzxid),
		Cversion: s.Cversion, DataVersion: s.Version, ACLVersion: s.Aversion,
		EphemeralOwner: hexID(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

// Data is the JSON form of a znode's data: Data if it's text, Base64 otherwise, and
// neither if it's null.
type Data struct {
	Data   *string `json:"data"`
	Base64 string  `json:"base64,omitempty"`
}

// NewData returns the JSON form of data.
func NewData(data []byte) Data {
	switch {
	case data == nil:
		return Data{}
	case utf8.Valid(data):
		text := string(data)
		return Data{Data: &text}
	}
	return Data{Base64: base64.StdEncoding.EncodeToString(data)}
}

// hexDump formats data as a table with sixteen bytes per line.
func hexDump(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	const (
		head = "         +-------------------------------------------------+\n" +
			"         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n"
		rule = "+--------+-------------------------------------------------+----------------+"
	)
	var b strings.Builder
	b.WriteString(head + rule)
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		var hex, text strings.Builder
		for _, c := range row {
			fmt.Fprintf(&hex, " %02x", c)
			if c < 0x20 || c >= 0x7f {
				c = '.'
			}
			text.WriteByte(c)
		}
		fmt.Fprintf(&b, "\n|%08x|%-49s|%-16s|", at, hex.String(), text.String())
	}
	return b.String() + "\n" + rule
}
