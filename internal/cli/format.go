package cli

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zkgo/zkgo/client"
)

// javaDate is how java.util.Date prints itself.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

// line is one line of what is printed about a znode.
type line struct{ key, value string }

// statLines are the lines of a Stat.
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

// printStat prints a Stat; on a terminal in columns.
func printStat(w io.Writer, t Term, s client.Stat) {
	for _, l := range statLines(s) {
		key := l.key
		if t.Width > 0 {
			key = fmt.Sprintf("%-14s", key)
		}
		fmt.Fprintf(w, "%s = %s\n", t.Paint(Faint, key), l.value)
	}
}

// Stat is a znode's metadata in JSON. Zxids and sessions are hexadecimal text,
// since readers of JSON lose digits of such numbers; times are in UTC.
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

// NewStat turns metadata into their form in JSON.
func NewStat(s client.Stat) *Stat {
	return &Stat{
		Czxid: hexID(s.Czxid), Ctime: isoTime(s.Ctime), Mzxid: hexID(s.Mzxid), Mtime: isoTime(s.Mtime), Pzxid: hexID(s.Pzxid),
		Cversion: s.Cversion, DataVersion: s.Version, ACLVersion: s.Aversion,
		EphemeralOwner: hexID(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

// Data are a znode's data in JSON: text if they are text, Base64 if not, neither if
// they are null.
type Data struct {
	Data   *string `json:"data"`
	Base64 string  `json:"base64,omitempty"`
}

// NewData turns data into their form in JSON.
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

// hexDump prints data sixteen bytes a line, between the lines of a table.
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
