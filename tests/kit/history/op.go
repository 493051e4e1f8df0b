package history

import (
	"fmt"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// Time is nanoseconds since the beginning of the run, on the one clock that all
// clients share; 0 means never.
type Time = int64

// Op is a request and its result.
type Op struct {
	Client  int   `json:"client"`
	Conn    int   `json:"conn"`    // connections are numbered through the run, from 1
	Session int64 `json:"session"` // of the connection
	Server  int   `json:"server"`  // that the connection leads to

	Sent   int  `json:"sent"`          // position among the requests of the connection, from 1
	Seq    int  `json:"seq,omitempty"` // position of the reply among all frames received on the connection, from 1; 0: no reply
	Call   Time `json:"call"`
	Return Time `json:"return,omitempty"` // 0: no reply

	Op      proto.Op         `json:"op"`
	Path    string           `json:"path,omitempty"`
	Value   string           `json:"value,omitempty"`   // written
	Version int32            `json:"version,omitempty"` // expected by setData, delete and check
	Mode    proto.CreateMode `json:"mode,omitempty"`
	Watch   bool             `json:"watch,omitempty"`  // the read leaves a watch
	Linear  bool             `json:"linear,omitempty"` // the server was asked to make the read linearizable, by its configuration or for the session
	Add     int32            `json:"add,omitempty"`    // mode of addWatch
	Parts   []Part           `json:"parts,omitempty"`  // of a multi
	Watches *Watches         `json:"watches,omitempty"`

	Code     proto.Code `json:"code,omitempty"`
	Zxid     int64      `json:"zxid,omitempty"`    // of the reply
	Created  string     `json:"created,omitempty"` // path of the new znode
	Data     string     `json:"data,omitempty"`    // read
	Stat     *Stat      `json:"stat,omitempty"`
	Children []string   `json:"children,omitempty"`
	Bad      string     `json:"bad,omitempty"` // the error in a reply that cannot be parsed
}

// Part is one operation of a multi and its result.
type Part struct {
	Op      proto.Op         `json:"op"`
	Path    string           `json:"path"`
	Value   string           `json:"value,omitempty"`
	Version int32            `json:"version,omitempty"`
	Mode    proto.CreateMode `json:"mode,omitempty"`

	Code    proto.Code `json:"code,omitempty"`
	Created string     `json:"created,omitempty"`
	Stat    *Stat      `json:"stat,omitempty"`
}

// Watches is the content of a setWatches2.
type Watches struct {
	Relative   int64    `json:"relative"`
	Data       []string `json:"data,omitempty"`
	Exist      []string `json:"exist,omitempty"`
	Child      []string `json:"child,omitempty"`
	Persistent []string `json:"persistent,omitempty"`
	Recursive  []string `json:"recursive,omitempty"`
}

// Stat is the part of a znode's metadata that checkers need.
type Stat struct {
	Czxid    int64 `json:"c"`
	Mzxid    int64 `json:"m"`
	Pzxid    int64 `json:"p"`
	Version  int32 `json:"v"`
	Cversion int32 `json:"cv"`
	Owner    int64 `json:"owner,omitempty"`
	Children int32 `json:"children,omitempty"`
}

// StatOf returns the part of s that checkers need.
func StatOf(s *proto.Stat) *Stat {
	return &Stat{Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid, Version: s.Version, Cversion: s.Cversion,
		Owner: s.EphemeralOwner, Children: s.NumChildren}
}

// Answered reports whether a reply came, including an error reply.
func (o *Op) Answered() bool { return o.Seq != 0 }

// Done reports whether the server said that it executed the request. A multi with
// a failed operation changed nothing.
func (o *Op) Done() bool {
	if !o.Answered() || o.Code != proto.Ok {
		return false
	}
	for i := range o.Parts {
		if o.Parts[i].Code != proto.Ok {
			return false
		}
	}
	return true
}

// String returns a line for people.
func (o *Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s..%s client %d conn %d server %d session %#x #%d %v", Clock(o.Call), Clock(o.Return), o.Client, o.Conn, o.Server, o.Session, o.Sent, o.Op)
	if o.Path != "" {
		fmt.Fprintf(&b, " %s", o.Path)
	}
	if o.Value != "" {
		fmt.Fprintf(&b, " = %q", o.Value)
	}
	if o.Version != 0 {
		fmt.Fprintf(&b, " if version %d", o.Version)
	}
	if o.Mode != 0 {
		fmt.Fprintf(&b, " mode %d", o.Mode)
	}
	if o.Linear {
		b.WriteString(" linearizable")
	}
	if o.Watch {
		b.WriteString(" with watch")
	}
	for i := range o.Parts {
		p := &o.Parts[i]
		fmt.Fprintf(&b, " {%v %s %q v%d: %v}", p.Op, p.Path, p.Value, p.Version, p.Code)
	}
	if o.Watches != nil {
		fmt.Fprintf(&b, " %+v", *o.Watches)
	}
	b.WriteString(" -> ")
	o.result(&b)
	return b.String()
}

// result writes the reply.
func (o *Op) result(b *strings.Builder) {
	if !o.Answered() {
		b.WriteString("no reply")
		return
	}
	fmt.Fprintf(b, "%v zxid %#x frame %d", o.Code, o.Zxid, o.Seq)
	if o.Bad != "" {
		fmt.Fprintf(b, " BAD: %s", o.Bad)
	}
	if o.Created != "" {
		fmt.Fprintf(b, " created %s", o.Created)
	}
	if o.Op == proto.OpGetData && o.Code == proto.Ok {
		fmt.Fprintf(b, " %q", o.Data)
	}
	if o.Stat != nil {
		fmt.Fprintf(b, " {czxid %#x mzxid %#x pzxid %#x version %d owner %#x}", o.Stat.Czxid, o.Stat.Mzxid, o.Stat.Pzxid, o.Stat.Version, o.Stat.Owner)
	}
	if o.Children != nil {
		fmt.Fprintf(b, " %v", o.Children)
	}
}

// Clock returns t in seconds, for people.
func Clock(t Time) string {
	if t == 0 {
		return "?"
	}
	return fmt.Sprintf("%.6fs", float64(t)/1e9)
}
